#include "faiss_bits/range/RangePieces.h"

#include <algorithm>
#include <utility>

namespace faiss_bits::gpu::detail {

void RangePieces::take(std::vector<RangePiece> pieces) {
    size_t at = 0;
    for (size_t q = 0; q < nq; ++q) {
        const size_t count = lims[q];
        lims[q] = at;
        at += count;
    }
    lims[nq] = at;
    size_t end = 0;
    ends_.clear();
    for (const RangePiece& piece : pieces) {
        ends_.push_back(end += size_t(piece.size));
    }
    pieces_ = std::move(pieces);
}

RangeRun RangePieces::run(size_t begin, size_t end) const {
    if (pieces_.empty()) {
        return {distances + begin, labels + begin, end - begin};
    }
    const auto piece = std::upper_bound(ends_.begin(), ends_.end(), begin);
    if (piece == ends_.end()) {
        return {};
    }
    const RangePiece& of = pieces_[size_t(piece - ends_.begin())];
    const size_t at = begin - (*piece - size_t(of.size));
    return {of.distances.get() + at,
            of.ids.get() + at,
            std::min(end, *piece) - begin};
}

} // namespace faiss_bits::gpu::detail
