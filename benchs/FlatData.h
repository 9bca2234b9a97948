#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace faiss_bits::bench {

/// Vectors and queries of bench_flat and bench_hard. From Far to Bits they are
/// made so that 16 or 32 bits of a distance do not tell a query's neighbours
/// apart, and certified searches repeat it. The last two are the same vectors,
/// stored in another order.
enum class FlatData {
    Uniform, ///< components in (0, 1]
    Far,     ///< the same, 10,000 added: float32 norms and products are useless
    Clusters,  ///< 256 clusters: centers in (0, 1]^d, components off by 0.01
    Few,       ///< one of 64 vectors with components in (0, 1] each
    Equal,     ///< all vectors are one and the same; queries are uniform
    Infinite,  ///< uniform; a third of the vectors have an infinite component
    Scales,    ///< components in (0, 1], times a power of two a row, 2^-39 to 1
    Near,      ///< four centers in (0, 1]^d, components off by 2^-22
    Bits,      ///< components 0 or 1: distances are small integers
    Clustered, ///< as Clusters, components off by up to 0.1, in any order
    ClusteredSorted, ///< the same, stored cluster by cluster
};

/// Of Clusters, and by default of Clustered and ClusteredSorted.
constexpr uint64_t kFlatClusters = 256;

constexpr bool isClustered(FlatData data) {
    return data == FlatData::Clustered || data == FlatData::ClusteredSorted;
}

const std::vector<std::string>& flatDataNames();

/// Throws std::invalid_argument that lists the names.
FlatData flatDataOf(const std::string& name);
std::string nameOf(FlatData data);

/// Fills values [rows, d] on the device, and waits: vectors, or queries of the
/// same kind. clusters: of Clustered and ClusteredSorted, 1 or more.
void fillFlatData(
        float* values,
        FlatData data,
        bool isQueries,
        int64_t rows,
        int d,
        int seed,
        uint64_t clusters = kFlatClusters);

} // namespace faiss_bits::bench
