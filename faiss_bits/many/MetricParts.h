#pragma once

#include <vector>

#include "faiss_bits/metric_space/MetricContents.h"
#include "kernels/metric_space/GroupsMemory.h"

/// An index for metric spaces, dealt out to several devices. Host only, no CUDA
/// call. Not part of the API.
namespace faiss_bits::gpu::detail {

/// What one device gets.
struct MetricPart {
    /// With vectors, made; they are numbered in the order of their ids.
    faiss_bits::detail::MetricContents contents;
    std::vector<idx_t> ids; ///< of the vectors in the whole, ascending
    idx_t size = 0; ///< vectors that are searched here: not pivots of others
};

/// Groups part, part + parts, part + 2 parts and so on of the whole, which is
/// made: clusters with their centers, or neighbours in the order of the pivots,
/// and then what is in neither. All pivots go to every part. In this round the
/// groups of a part keep their order.
///
/// Source  Barrientos et al. 2012, VII-A: "in a circular manner"
MetricPart metricPart(
        const faiss_bits::detail::MetricContents& whole,
        int part,
        int parts);

/// The bounds of all parts, in the order of the whole. Their ids are those of
/// the whole.
metric_space::HostGroupBounds joinBounds(
        const std::vector<metric_space::HostGroupBounds>& parts);

/// Groups of a part of so many groups that are dealt out so.
inline uint32_t groupsOfPart(uint32_t groups, int part, int parts) {
    return (groups + uint32_t(parts - 1 - part)) / uint32_t(parts);
}

} // namespace faiss_bits::gpu::detail
