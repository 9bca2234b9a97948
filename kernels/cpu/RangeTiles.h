#pragma once

#include <functional>

#include "kernels/cpu/Plan.h"
#include "kernels/cpu/Setup.h"

namespace faiss_bits::cpu {

/// Keys of a block of queries and a piece of the vectors.
template <class T>
struct RangeKeys {
    int thread = 0;
    idx_t order = 0; ///< below RangeTiles::orders(): by ascending vectors
    idx_t query = 0, rows = 0;    ///< rows of the setup's queries
    idx_t first = 0, columns = 0; ///< its vectors
    T* keys = nullptr; ///< [rows, columns], with room for a vector behind
    idx_t stride = 0;
};

/// The packed sweeps of a certified range search that store all keys of a block
/// before any is compared. They call the interrupt hook on their way.
template <class T>
class RangeTiles {
   public:
    using Done = std::function<void(const RangeKeys<T>&)>;

    /// `setup` must outlive it. `plan`: threads, and the blocks of queries and
    /// components. mostColumns: vectors of a piece; 0: chosen.
    RangeTiles(const Setup<T>& setup, const Plan& plan, idx_t mostColumns);

    idx_t orders() const {
        return pieces_ * plan_.threads;
    }

    /// Calls done(keys), on several threads, until all pairs were there. Keys
    /// with one `order` are on one thread.
    void run(const Done& done);

   private:
    void runPiece(idx_t piece, int thread, bool isAlone, const Done& done);

    const Setup<T>& setup_;
    Plan plan_;
    bool byPieces_; ///< threads share the pieces, not the queries
    idx_t pieces_ = 1;
    struct Scratch {
        AlignedBuffer<T> keys, terms;
        std::vector<RowState> states;
        Sink<T> sink;
    };
    std::vector<Scratch> scratch_; ///< of a thread
};

} // namespace faiss_bits::cpu
