#include "kernels/cpu/ivf/IvfScanner.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/ivf/IvfWays.h"

namespace faiss_bits::cpu {

namespace {

/// Values that a packed panel needs behind its end.
constexpr idx_t kPanelSlack = 16;

/// Bytes of a packed piece of a list, and of queries that meet it in turn: both
/// fit into the cache of a core.
constexpr idx_t kPieceBytes = 1 << 17;
constexpr idx_t kGroupBytes = 1 << 17;

/// Components of a tile at a time: a tile of each side is a part of the cache.
constexpr int kMostDepth = 1536;
constexpr int kGroupPanels = 4;

/// Vectors that are scanned for one query before the next has its turn.
constexpr idx_t kDirectBytes = 1 << 16;

void grow(AlignedBuffer<float>& buffer, size_t& size, size_t wanted) {
    if (size < wanted) {
        size = 0;
        buffer.allocate(wanted);
        size = wanted;
    }
}

} // namespace

void IvfScanner::scan(
        const IvfBlock& block,
        const IvfItem& item,
        const Sink<float>& sink,
        IvfWaysUsed& used) {
    const OpenIvfList list(*setup_.problem.lists, item.list);
    const IvfPlaces* allowed = setup_.allowed(item.list);
    const RowView<float> vectors = {
            list.rows(),
            setup_.search.depth,
            allowed ? allowed->data() : nullptr};
    const bool isDirect =
            setup_.way == IvfWay::Auto || setup_.way == IvfWay::Gathered
            ? item.numPairs <= fewQueries(item.count, setup_.search.depth)
            : setup_.way == IvfWay::Direct;
    Sink<float> own = sink;
    if (isDirect) {
        used.direct = true;
        scanDirect(block, item, vectors, own);
    } else {
        used.tiles = true;
        scanTiles(block, item, vectors, own);
    }
}

void IvfScanner::scanRow(
        const IvfBlock& block,
        idx_t row,
        const Sink<float>& sink,
        IvfWaysUsed& used) {
    const IvfItem* const begin = block.beginOf(row);
    const IvfItem* const end = block.endOf(row);
    if (begin == end) {
        return;
    }
    const idx_t depth = setup_.search.depth;
    offsets_.resize(block.total(row));
    const float* base = nullptr;
    idx_t* to = offsets_.data();
    for (const IvfItem* item = begin; item < end; ++item) {
        const OpenIvfList list(*setup_.problem.lists, item->list);
        base = base ? base : list.rows();
        writeIvfOffsets(
                base,
                list.rows(),
                depth,
                setup_.allowed(item->list),
                item->count,
                to);
        to += item->count;
    }
    IvfItem all = *begin;
    all.count = block.total(row);
    Sink<float> own = sink;
    used.direct = true;
    scanDirect(block, all, {base, 1, offsets_.data()}, own);
}

void IvfScanner::scanDirect(
        const IvfBlock& block,
        const IvfItem& item,
        const RowView<float>& vectors,
        Sink<float>& sink) {
    const Setup<float>& search = setup_.search;
    const idx_t rows = item.numPairs;
    const idx_t stride = roundUp(search.depth, search.common.lanes);
    grow(queries_, queriesSize_, rows * stride);
    const int32_t* places = block.rowsOf(item);
    queryIds_.resize(rows);
    filters_.resize(rows);
    terms_.resize(rows);
    for (idx_t i = 0; i < rows; ++i) {
        queryIds_[i] = setup_.query(block.first() + places[i]);
        sink.queryTerm[places[i]] = 0;
        filters_[i] = sink.limit[places[i]];
    }
    PackJob<float> pack;
    pack.rows = {setup_.problem.queries, search.depth, queryIds_.data()};
    pack.count = rows;
    pack.depth = search.depth;
    pack.panels = queries_.get();
    pack.terms = terms_.data();
    search.common.copyQueries(pack, search.metric, stride);
    const idx_t piece = rows == 1
            ? item.count
            : std::max<idx_t>(
                      2 * search.common.tileVectors,
                      kDirectBytes / idx_t(sizeof(float)) / search.depth /
                              search.common.tileVectors *
                              search.common.tileVectors);
    float largest = 0;
    ScanJob<float> job;
    job.queryStride = stride;
    job.rows = 1;
    job.vectors = vectors;
    job.depth = search.depth;
    job.power = search.power;
    job.sink = &sink;
    const idx_t end = item.begin + item.count;
    for (idx_t begin = item.begin; begin < end; begin += piece) {
        job.begin = begin;
        job.end = std::min(begin + piece, end);
        job.firstId = item.firstSlot + (begin - item.begin);
        for (idx_t i = 0; i < rows; ++i) {
            job.queries = queries_.get() + i * stride;
            job.largestSquare = i == 0 ? &largest : nullptr;
            // The query before has read the piece.
            job.isNear = setup_.isNear || i > 0;
            sink.filter = filters_.data() + i;
            sink.places = places + i;
            search.kernels.scanDirect(job);
        }
    }
    if (search.lengths) {
        raiseTo(search.lengths->largestSquare, largest);
    }
}

idx_t IvfScanner::packRows(
        const IvfBlock& block,
        const std::vector<int32_t>& rows,
        idx_t from,
        Sink<float>& sink) {
    const Setup<float>& search = setup_.search;
    const idx_t count = idx_t(rows.size());
    for (idx_t i = 0; i < count; ++i) {
        places_[from + i] = rows[i];
        queryIds_[from + i] = setup_.query(block.first() + rows[i]);
    }
    PackJob<float> pack;
    pack.rows = {setup_.problem.queries, search.depth, queryIds_.data() + from};
    pack.count = count;
    pack.depth = search.depth;
    pack.panels = queries_.get() + from * search.depth;
    pack.terms = terms_.data() + from;
    search.common.packQueries(pack, search.metric);
    for (idx_t i = from; i < from + count; ++i) {
        const int32_t place = places_[i];
        sink.queryTerm[place] = terms_[i];
        filters_[i] = sink.limit[place] - terms_[i];
    }
    return roundUp(count, search.common.tileQueries);
}

void IvfScanner::scanTiles(
        const IvfBlock& block,
        const IvfItem& item,
        const RowView<float>& vectors,
        Sink<float>& sink) {
    const Setup<float>& search = setup_.search;
    const idx_t depth = search.depth;
    const int tileRows = search.common.tileQueries;
    const int tileVectors = search.common.tileVectors;
    all_.clear();
    below_.clear();
    const int32_t* rows = block.rowsOf(item);
    for (idx_t i = 0; i < item.numPairs; ++i) {
        const bool isBelow = sink.state[rows[i]] == RowState::Below;
        (isBelow ? below_ : all_).push_back(rows[i]);
    }
    const idx_t padded = item.numPairs + 3 * tileRows;
    places_.resize(padded);
    queryIds_.resize(padded);
    terms_.resize(padded);
    // What is no row takes nothing.
    filters_.assign(padded, -std::numeric_limits<float>::infinity());
    grow(queries_, queriesSize_, padded * depth + kPanelSlack);
    const idx_t firstBelow = packRows(block, all_, 0, sink);
    packRows(block, below_, firstBelow, sink);
    sink.filter = filters_.data();
    sink.places = places_.data();

    const idx_t rowBytes = depth * idx_t(sizeof(float));
    const idx_t piece = std::min(
            roundUp(item.count, tileVectors),
            std::max<idx_t>(
                    tileVectors,
                    kPieceBytes / rowBytes / tileVectors * tileVectors));
    const idx_t group = std::max<idx_t>(
            tileRows, kGroupBytes / rowBytes / tileRows * tileRows);
    const idx_t depthBlocks = (depth + kMostDepth - 1) / kMostDepth;
    TileJob<float> job;
    job.depth = search.depth;
    job.depthBlock = int((depth + depthBlocks - 1) / depthBlocks);
    job.groupPanels = kGroupPanels;
    job.power = search.power;
    job.sink = &sink;
    if (depthBlocks > 1) {
        grow(partial_, partialSize_, kGroupPanels * group * tileVectors);
        job.partial = partial_.get();
    }
    if (vectorsSize_ < size_t(piece * depth)) {
        vectorsSize_ = 0;
        vectorTerms_.allocate(piece);
        grow(vectors_, vectorsSize_, piece * depth);
    }
    job.vectors = vectors_.get();
    job.vectorTerm = vectorTerms_.get();
    const idx_t end = item.begin + item.count;
    for (idx_t begin = item.begin; begin < end; begin += piece) {
        PackJob<float> pack;
        pack.rows = vectors;
        pack.begin = begin;
        pack.count = std::min(piece, end - begin);
        pack.depth = search.depth;
        pack.panels = vectors_.get();
        pack.terms = vectorTerms_.get();
        search.common.packVectors(pack, search.metric);
        if (search.lengths) {
            noteLengths(
                    *search.lengths,
                    search.metric,
                    vectors,
                    search.depth,
                    begin,
                    pack.count,
                    vectorTerms_.get());
        }
        job.columns = pack.count;
        job.firstId = item.firstSlot + (begin - item.begin);
        const auto run = [&](idx_t from, idx_t count) {
            for (idx_t i = 0; i < count; i += group) {
                job.firstRow = from + i;
                job.rows = int(std::min(group, count - i));
                job.queries = queries_.get() + (from + i) * depth;
                search.kernels.runTiles(job);
            }
        };
        run(0, idx_t(all_.size()));
        run(firstBelow, idx_t(below_.size()));
    }
}

} // namespace faiss_bits::cpu
