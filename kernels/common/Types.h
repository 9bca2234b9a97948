#pragma once

#include <cstddef>
#include <cstdint>

/// Plain types shared by every kernel family. No CUDA and no FAISS header.
namespace faiss_bits {

/// Ids and counts, as in FAISS.
using idx_t = int64_t;

/// Scalar type of keys and vectors in memory.
enum class DataType : uint8_t { Float32, Float16, BFloat16 };

/// Type of the ids that a call reads and writes.
enum class IdType : uint8_t { Int32, Int64 };

/// How far a vector is from a query. Inverted lists and indexes for metric
/// spaces know some of them, and refuse the others.
enum class Metric : uint8_t {
    L2,           ///< squared; smallest first
    InnerProduct, ///< largest first
    L1,           ///< sum of |difference|
    Linf,         ///< largest |difference|
    Lp,           ///< sum of |difference|^p, without the root, as FAISS
    Cosine,       ///< of vectors of any length; largest first
    // The terms of these are in kernels/canonical/Distance.h.
    Canberra,      ///< smallest first, as the next two
    BrayCurtis,    //
    JensenShannon, //
    Jaccard,       ///< a similarity: largest first
};

/// True if the largest values are the nearest.
constexpr bool isSimilarity(Metric metric) {
    return metric == Metric::InnerProduct || metric == Metric::Cosine ||
            metric == Metric::Jaccard;
}

/// Bytes of a number.
constexpr size_t sizeOf(DataType type) {
    return type == DataType::Float32 ? 4 : 2;
}

/// Bytes of an id.
constexpr size_t sizeOf(IdType type) {
    return type == IdType::Int32 ? 4 : 8;
}

} // namespace faiss_bits
