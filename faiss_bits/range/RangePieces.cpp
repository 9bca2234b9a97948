#include "faiss_bits/range/RangePieces.h"

#include <algorithm>
#include <typeinfo>
#include <utility>

#include "faiss_bits/common/HostParts.h"
#include "faiss_bits/range/RangeResults.h"

namespace faiss_bits::gpu::detail {

namespace {

/// As do_allocation() does.
void makeLimits(faiss::RangeSearchResult& result) {
    size_t at = 0;
    for (size_t q = 0; q < result.nq; ++q) {
        const size_t count = result.lims[q];
        result.lims[q] = at;
        at += count;
    }
    result.lims[result.nq] = at;
}

} // namespace

void RangePieces::take(std::vector<RangePiece> pieces) {
    makeLimits(*this);
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

void givePieces(
        std::vector<RangePiece> pieces,
        faiss::RangeSearchResult& result) {
    if (auto* asPieces = dynamic_cast<RangePieces*>(&result)) {
        asPieces->take(std::move(pieces));
        return;
    }
    if (pieces.size() == 1 &&
        typeid(result) == typeid(faiss::RangeSearchResult)) {
        makeLimits(result);
        result.labels = pieces[0].ids.release();
        result.distances = pieces[0].distances.release();
        return;
    }
    allocateResults(result);
    size_t at = 0;
    for (RangePiece& piece : pieces) {
        const size_t size = size_t(piece.size);
        copyHostBytes(
                result.distances + at,
                piece.distances.get(),
                size * sizeof(float));
        copyHostBytes(
                result.labels + at, piece.ids.get(), size * sizeof(idx_t));
        at += size;
        piece = {}; // two copies of one piece, not of all
    }
}

} // namespace faiss_bits::gpu::detail
