#include "faiss_bits/flat/SearchFilter.h"

#include <algorithm>

#include "faiss_bits/flat/DeviceSelector.h"
#include "faiss_bits/flat/SelectorBits.h"
#include "kernels/knn/filter/FilterBits.h"

namespace faiss_bits::gpu::detail {

namespace {

/// A list that is made for one call has to earn what it costs: some 10 us.
bool listIsWorthMaking(idx_t n, idx_t most, idx_t queries) {
    constexpr idx_t kLeastVectors = 16384;
    constexpr idx_t kManyQueries = 16;
    return n >= kLeastVectors &&
            most <= (queries > kManyQueries ? mostListed(n) : n / 4);
}

} // namespace

SearchFilter::SearchFilter(
        const GpuContext& context,
        const faiss::SearchParameters* params,
        idx_t n,
        idx_t queries) {
    if (!params || !params->sel) {
        return;
    }
    const SelectorTree tree = readSelector(*params->sel, n, context.device);
    if (tree.kind == SelectorTree::Kind::Prepared) {
        bits_ = tree.prepared->bits();
        ids_ = tree.prepared->ids();
        numIds_ = ids_ ? tree.prepared->numSelected() : 0;
        return;
    }
    evaluate_(context, tree, n, queries);
}

void SearchFilter::evaluate_(
        const GpuContext& context,
        const SelectorTree& tree,
        idx_t n,
        idx_t queries) {
    using faiss::gpu::GpuMemoryReservation;
    const auto allocate = [&](size_t bytes) -> std::shared_ptr<void> {
        auto held = std::make_shared<GpuMemoryReservation>(
                allocTemporary(context, std::max<size_t>(bytes, 1)));
        return {held, held->get()};
    };
    const SelectorPlace place{context.device, context.stream, allocate};

    ownBits_ = allocTemporary(
            context, std::max<size_t>(filterWords(n), 1) * sizeof(uint32_t));
    auto* bits = static_cast<uint32_t*>(ownBits_.get());
    runSelectorBits(tree, n, bits, place);
    bits_ = bits;
    if (listIsWorthMaking(n, tree.most, queries)) {
        ownIds_ = allocTemporary(
                context, std::max<size_t>(tree.most, 1) * sizeof(int32_t));
        auto* ids = static_cast<int32_t*>(ownIds_.get());
        runSelectorIds(bits, n, ids, tree.most, place);
        ids_ = ids;
        numIds_ = tree.most;
    }
}

} // namespace faiss_bits::gpu::detail
