#include "kernels/cpu/ivf/IvfSelection.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/Certifier.h"

namespace faiss_bits::cpu {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A store of a vector behind the last candidate.
constexpr idx_t kSlack = 16;

void lowerTo(std::atomic<float>& limit, float value) {
    float known = limit.load(std::memory_order_relaxed);
    while (value < known &&
           !limit.compare_exchange_weak(
                   known, value, std::memory_order_relaxed)) {
    }
}

} // namespace

IvfBufferShape ivfBufferShape(const IvfSetup& setup, idx_t largestTotal) {
    const Setup<float>& search = setup.search;
    const idx_t k = std::min(setup.problem.k, largestTotal);
    const idx_t tile = search.common.tileVectors;
    IvfBufferShape shape;
    shape.candidates =
            withMargin(k, {search.metric, search.depth, largestTotal});
    // Few cuts, yet a limit that is not long out of date. A row that meets less
    // is never cut.
    const idx_t more = std::max<idx_t>(
            shape.candidates, std::min<idx_t>(16 * shape.candidates, 64));
    shape.capacity = std::min(shape.candidates + more, largestTotal) + 2 * tile;
    shape.stride = roundUp(shape.capacity + kSlack, 16);
    return shape;
}

void IvfSelection::reset(const IvfBlock& block) {
    block_ = &block;
    rows_ = block.numRows();
    const IvfBufferShape shape = ivfBufferShape(setup_, block.largestTotal());
    stride_ = shape.stride;
    const size_t all = size_t(parts_) * rows_;
    limits_.assign(all, kInfinity);
    terms_.assign(all, 0.f);
    // Not All: those have no ids of their own, as one list follows another.
    states_.assign(all, RowState::Numbers);
    counts_.assign(all, 0);
    if (size_ < all * stride_) {
        size_ = 0;
        keys_.allocate(all * stride_);
        ids_.allocate(all * stride_);
        size_ = all * stride_;
    }
    used_.assign(parts_, {});
    if (parts_ > 1) {
        shared_ = std::vector<std::atomic<float>>(rows_);
        for (auto& limit : shared_) {
            limit.store(kInfinity, std::memory_order_relaxed);
        }
    }
    for (int part = 0; part < parts_; ++part) {
        const idx_t first = part * rows_;
        Sink<float>& sink = sinks_[part];
        sink.kind = SinkKind::Buffer;
        sink.clampAtZero = setup_.search.metric == KernelMetric::L2;
        sink.k = shape.candidates;
        sink.limit = limits_.data() + first;
        sink.state = states_.data() + first;
        sink.queryTerm = terms_.data() + first;
        sink.counts = counts_.data() + first;
        sink.keys = keys_.get() + first * stride_;
        sink.ids = ids_.get() + first * stride_;
        sink.keyStride = sink.idStride = stride_;
        sink.capacity = sink.firstCapacity = shape.capacity;
    }
}

void IvfSelection::scan(const IvfItem& item, int part, IvfScanner& scanner) {
    Sink<float>& sink = sinks_[part];
    const int32_t* rows = block_->rowsOf(item);
    if (parts_ > 1) {
        for (idx_t i = 0; i < item.numPairs; ++i) {
            const int32_t row = rows[i];
            const float limit = shared_[row].load(std::memory_order_relaxed);
            if (limit < sink.limit[row]) {
                sink.limit[row] = limit;
                sink.state[row] = RowState::Below;
            }
        }
    }
    scanner.scan(*block_, item, sink, used_[part]);
    if (parts_ > 1) {
        for (idx_t i = 0; i < item.numPairs; ++i) {
            if (sink.state[rows[i]] == RowState::Below) {
                lowerTo(shared_[rows[i]], sink.limit[rows[i]]);
            }
        }
    }
}

void IvfSelection::scanRow(idx_t row, IvfScanner& scanner) {
    scanner.scanRow(*block_, row, sinks_[0], used_[0]);
}

IvfCandidates IvfSelection::candidatesOf(idx_t row, float* keys, int32_t* slots)
        const {
    IvfCandidates found;
    found.limit = kInfinity;
    found.keys = keys;
    found.slots = slots;
    for (const Sink<float>& sink : sinks_) {
        const idx_t count = sink.counts[row];
        const float* fromKeys = sink.keys + row * stride_;
        const int32_t* fromSlots = sink.ids + row * stride_;
        // What is behind a limit of NaN is NaN, too.
        if (sink.state[row] == RowState::Below) {
            found.limit = std::min(found.limit, sink.limit[row]);
        }
        if (parts_ == 1) {
            found.keys = fromKeys;
            found.slots = fromSlots;
        } else {
            std::copy_n(fromKeys, count, keys + found.count);
            std::copy_n(fromSlots, count, slots + found.count);
        }
        found.count += count;
    }
    found.isAll = found.count == block_->total(row);
    return found;
}

IvfWaysUsed IvfSelection::waysUsed() const {
    IvfWaysUsed all;
    for (const IvfWaysUsed& used : used_) {
        all.tiles = all.tiles || used.tiles;
        all.direct = all.direct || used.direct;
    }
    return all;
}

} // namespace faiss_bits::cpu
