#pragma once

#include <functional>
#include <vector>

#include "kernels/cpu/KernelTypes.h"
#include "kernels/cpu/Plan.h"
#include "kernels/cpu/Setup.h"

/// The sweeps that feed every distance to the sinks, which k nearest neighbours
/// and range search share.
namespace faiss_bits::cpu {

/// The sweep whose threads share the queries. Keeps its scratch from one batch
/// of queries to the next, and the packed vectors if they are one block.
/// `setup` and `plan` must outlive it.
template <class T>
class QuerySweep {
   public:
    QuerySweep(const Setup<T>& setup, const Plan& plan, idx_t mostQueries);

    /// Every distance between queries begin .. begin + count - 1 and the
    /// vectors goes to row 0 .. count - 1 of the sink. `blockDone(first, n)` is
    /// called after every block of vectors.
    void run(
            idx_t begin,
            idx_t count,
            Sink<T>& sink,
            const std::function<void(idx_t first, idx_t n)>& blockDone);

    /// All queries, where the vectors are one block. Those of a block go to the
    /// rows of a sink from the one on that `open(thread)` returns;
    /// `close(thread, query, rows)` is called on the same thread when it is
    /// done. Where `open` returns no sink, the block is left out.
    struct Place {
        Sink<T>* sink = nullptr;
        idx_t row = 0; ///< of whole tiles
    };
    using Open = std::function<Place(int thread)>;
    using Close = std::function<void(int thread, idx_t query, idx_t rows)>;
    void runApart(const Open& open, const Close& close);

    /// The most queries of a block.
    idx_t blockRows() const {
        return blockRows_;
    }

   private:
    struct Scratch {
        AlignedBuffer<T> queries, partial;
    };

    void pack(idx_t first, idx_t count);
    /// body(thread, row, rows) for blocks that make up `count` rows; calls the
    /// interrupt hook in between.
    template <class Body>
    void forBlocks(idx_t count, idx_t columns, const Body& body);
    /// `rows` queries from `query` on against the packed vectors.
    void runBlock(
            int thread,
            idx_t query,
            idx_t rows,
            idx_t first,
            idx_t columns,
            Sink<T>& sink,
            idx_t sinkRow);

    const Setup<T>& setup_;
    const Plan& plan_;
    idx_t width_;            ///< vectors of a block
    idx_t blockRows_;        ///< queries of a block, whole tiles
    idx_t packedFirst_ = -1; ///< first vector of the block that is packed
    AlignedBuffer<T> panels_, terms_;
    std::vector<Scratch> scratch_; ///< of a thread: no thread allocates
};

/// The same with a sink for each of `parts` consecutive ranges of the vectors,
/// which the threads share. Packed, or direct as the plan says.
template <class T>
void sweepByVectors(
        const Setup<T>& setup,
        const Plan& plan,
        idx_t begin,
        idx_t count,
        Sink<T>* sinks,
        int parts);

/// First vector of a part, in whole tiles: parts differ by a tile at most.
inline idx_t partBegin(idx_t numVectors, int tile, int part, int parts) {
    const idx_t tiles = (numVectors + tile - 1) / tile;
    const idx_t begin = tiles / parts * part + tiles % parts * part / parts;
    return begin * tile < numVectors ? begin * tile : numVectors;
}

} // namespace faiss_bits::cpu
