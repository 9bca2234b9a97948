#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/metric_space/MetricSpace.h"

namespace faiss_bits::metric_space {

/// What lets a search leave groups out.
enum class GroupBounds : uint8_t {
    None,    ///< nothing
    Centers, ///< List of Clusters: a group is a bucket
    Pivots,  ///< SSS: a group is some neighbours in the order of a PivotTable
};

/// Vectors in groups that a search looks at or leaves out as a whole. All
/// pointers are to the device.
struct MetricGroups {
    Metric metric = Metric::L2; ///< L2, L1 or Linf
    int d = 0;                  ///< components
    idx_t numIds = 0;           ///< ids are below it

    idx_t n = 0;                      ///< vectors in groups, below 2^31
    const float* vectors = nullptr;   ///< [n, d], group after group
    const int32_t* ids = nullptr;     ///< [n]
    uint32_t numGroups = 0;           ///< bounded ones first
    const uint32_t* firsts = nullptr; ///< [numGroups + 1] of the vectors

    GroupBounds kind = GroupBounds::None; ///< what the bounds are of
    /// Groups 0 .. numBounded - 1 may be left out; the others never.
    uint32_t numBounded = 0;
    /// Vectors of a bounded group; the last may have fewer.
    uint32_t groupSize = 1;
    /// Centers (of the bounded groups) or pivots.
    uint32_t numReferences = 0;
    const float* references = nullptr; ///< [numReferences, d]
    /// Centers are in no group, and results too: [numReferences]; one with a
    /// negative id is none. Pivots: nullptr.
    const int32_t* referenceIds = nullptr;
    /// Bounds of true distances (kernels/canonical/TrueDistance.h).
    /// Centers: [numBounded], of the radii. Pivots: [numReferences,
    /// numBounded], of the nearest and of the farthest vector of a group.
    const double* leasts = nullptr; ///< not above the distance
    const double* mosts = nullptr;  ///< not below the distance

    // For Mapping::QueryMajor alone: the vectors, references and, of pivots,
    // true distances, rounded to float32, by columns.
    const float* vectorColumns = nullptr;    ///< [d, n]
    const float* referenceColumns = nullptr; ///< [d, numReferences]
    const float* pivotDistances = nullptr;   ///< [numReferences, n]
};

/// out [columns, rows] = in [rows, columns].
void runTranspose(
        const float* in,
        idx_t rows,
        int columns,
        float* out,
        cudaStream_t stream);

/// Canonical distances of all vectors of the groups to one vector [d], or those
/// of a PivotTable: out [n].
void runRowDistances(
        const MetricGroups& groups,
        const float* to,
        bool forTable,
        float* out,
        cudaStream_t stream);

/// Of a pivot's distances to all vectors, as runRowDistances has them, the
/// bounds of the groups: row `pivot` of leasts and mosts.
void runGroupBounds(
        const MetricGroups& groups,
        const float* distances,
        uint32_t pivot,
        double* leasts,
        double* mosts,
        cudaStream_t stream);

} // namespace faiss_bits::metric_space
