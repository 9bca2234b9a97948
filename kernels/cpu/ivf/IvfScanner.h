#pragma once

#include <vector>

#include "kernels/cpu/ivf/IvfBlock.h"
#include "kernels/cpu/ivf/IvfSetup.h"

namespace faiss_bits::cpu {

/// What arithmetic made the keys of a block: their errors differ.
struct IvfWaysUsed {
    bool tiles = false, direct = false;
};

/// A thread's way from an item to candidates.
class IvfScanner {
   public:
    /// `setup` must outlive it.
    explicit IvfScanner(const IvfSetup& setup) : setup_(setup) {}

    /// Gives the keys of an item and its rows to the sink, whose arrays are by
    /// row of the block.
    void scan(
            const IvfBlock& block,
            const IvfItem& item,
            const Sink<float>& sink,
            IvfWaysUsed& used);

    /// The same for all items of a row of a block that was built by rows, at a
    /// time. Of lists that stay where they are.
    void scanRow(
            const IvfBlock& block,
            idx_t row,
            const Sink<float>& sink,
            IvfWaysUsed& used);

   private:
    void scanDirect(
            const IvfBlock& block,
            const IvfItem& item,
            const RowView<float>& vectors,
            Sink<float>& sink);
    void scanTiles(
            const IvfBlock& block,
            const IvfItem& item,
            const RowView<float>& vectors,
            Sink<float>& sink);
    /// Rows that take all, and the others, from a panel of their own on: packs
    /// them and sets their filters. Returns the rows of both.
    idx_t packRows(
            const IvfBlock& block,
            const std::vector<int32_t>& rows,
            idx_t from,
            Sink<float>& sink);

    const IvfSetup& setup_;
    std::vector<int32_t> places_, all_, below_;
    std::vector<idx_t> queryIds_;
    std::vector<idx_t> offsets_; ///< of vectors from the first list, in floats
    std::vector<float> filters_, terms_;
    AlignedBuffer<float> queries_, vectors_, vectorTerms_, partial_;
    size_t queriesSize_ = 0, vectorsSize_ = 0, partialSize_ = 0;
};

} // namespace faiss_bits::cpu
