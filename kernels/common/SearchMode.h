#pragma once

#include <cstdint>

namespace faiss_bits {

/// What a search promises of its distances and of their order.
enum class SearchMode : uint8_t {
    /// Canonical distances (kernels/canonical/Distance.h) in every place, and
    /// the order (distance, id) that they make. docs/exact.md
    Certified,
    /// The distances of arithmetic in float32, as FAISS's: their last
    /// bits, and with them the order of near neighbours, depend on the size of
    /// the batch and on the machine.
    Plain,
    /// Of k-NN searches of vectors on a GPU, where a scan on tensor cores finds
    /// what certified searches rank: the scan's own distances and their order
    /// (distance, id), of products of 16 bits. docs/exact.md has how far they
    /// may be off, and which searches that are. All others: as Certified.
    Fast,
};

/// What certified searches did, in queries and in candidates. Each query is
/// either `certified` or `repeated`. Of fast ones a query that the scan alone
/// answered is among the former; candidates without a bound are rescored.
struct SearchStats {
    /// Queries whose first candidates were proved to be enough.
    int64_t certified = 0;
    /// Queries that were searched again, by canonical distances of all vectors.
    int64_t repeated = 0;
    /// Candidates whose canonical distance was computed, scans of repeated
    /// queries not counted.
    int64_t rescored = 0;
};

} // namespace faiss_bits
