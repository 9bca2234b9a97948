#pragma once

#include <cstddef>

#include "kernels/common/Types.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Scratch of one search of inverted lists.
constexpr size_t kMostScratch = size_t(448) << 20;
/// Of a range search whose results stay on the device: the more queries at a
/// time, the more of them meet in a list.
constexpr size_t kMostDeviceRangeScratch = size_t(1) << 30;
/// Lists that queries of one part of a search are given: 12 bytes each.
constexpr idx_t kMostProbes = idx_t(1) << 23;

} // namespace faiss_bits::gpu::detail
