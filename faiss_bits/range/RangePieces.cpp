#include "faiss_bits/range/RangePieces.h"

#include <algorithm>
#include <typeinfo>
#include <utility>

#include "faiss_bits/common/HostParts.h"
#include "faiss_bits/common/Waiting.h"
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

/// Results in one row, whatever queries they are of.
RangeMoves inARow(std::vector<RangeBlock> blocks) {
    RangeMoves moves;
    size_t size = 0;
    for (const RangeBlock& block : blocks) {
        size += block.size;
    }
    moves.blocks = std::move(blocks);
    moves.limits = {0, size};
    moves.places = {0};
    return moves;
}

} // namespace

RangeBlock RangePiece::block() const {
    if (!onDevice) {
        return {distances.get(), ids.get(), size_t(size), nullptr};
    }
    waitFor(device.stream); // it is complete then
    return {reinterpret_cast<const float*>(onDevice + size),
            onDevice,
            size_t(size),
            &device};
}

void RangePieces::take(std::vector<RangePiece> pieces) {
    makeLimits(*this);
    size_t end = 0;
    ends_.clear();
    for (const RangePiece& piece : pieces) {
        ends_.push_back(end += size_t(piece.size));
    }
    pieces_ = std::move(pieces);
}

void RangePieces::fetch() {
    for (RangePiece& piece : pieces_) {
        if (!piece.onDevice) {
            continue;
        }
        RangePiece here;
        here.size = piece.size;
        const size_t size = size_t(piece.size);
        here.distances = std::make_unique_for_overwrite<float[]>(size);
        here.ids = std::make_unique_for_overwrite<idx_t[]>(size);
        wantLargePages(here.distances.get(), size * sizeof(float));
        wantLargePages(here.ids.get(), size * sizeof(idx_t));
        moveRanges(
                {inARow({piece.block()})},
                here.distances.get(),
                here.ids.get());
        piece = std::move(here);
    }
}

std::vector<RangeBlock> RangePieces::blocks() const {
    if (pieces_.empty()) {
        return {{distances, labels, lims[nq], nullptr}};
    }
    std::vector<RangeBlock> all;
    for (const RangePiece& piece : pieces_) {
        all.push_back(piece.block());
    }
    return all;
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
    if (pieces.size() == 1 && !pieces[0].onDevice &&
        typeid(result) == typeid(faiss::RangeSearchResult)) {
        makeLimits(result);
        result.labels = pieces[0].ids.release();
        result.distances = pieces[0].distances.release();
        return;
    }
    std::vector<RangeBlock> blocks;
    for (const RangePiece& piece : pieces) {
        blocks.push_back(piece.block());
    }
    moveToResult({inARow(std::move(blocks))}, result);
}

void moveToResult(
        const std::vector<RangeMoves>& moves,
        faiss::RangeSearchResult& result) {
    allocateResults(result);
    try {
        moveRanges(moves, result.distances, result.labels);
    } catch (...) {
        if (typeid(result) == typeid(faiss::RangeSearchResult)) {
            delete[] result.labels;
            delete[] result.distances;
            result.labels = nullptr;
            result.distances = nullptr;
        }
        throw;
    }
}

} // namespace faiss_bits::gpu::detail
