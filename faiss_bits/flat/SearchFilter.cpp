#include "faiss_bits/flat/SearchFilter.h"

#include <algorithm>

#include "faiss_bits/flat/DeviceSelector.h"
#include "faiss_bits/flat/SearchWithin.h"
#include "faiss_bits/flat/SelectorBits.h"
#include "kernels/knn/filter/FilterBits.h"

namespace faiss_bits::gpu::detail {

namespace {

/// A list that is made for one call has to earn what it costs: some 10 us.
bool listIsWorthMaking(idx_t n, idx_t most, idx_t queries) {
    constexpr idx_t kLeastVectors = 16384;
    constexpr idx_t kManyQueries = 16;
    return n >= kLeastVectors && n <= kMostListable &&
            most <= (queries > kManyQueries ? mostListed(n) : n / 4);
}

FilterShape shapeOf(const SelectorTree& tree, idx_t n, idx_t queries) {
    FilterShape shape;
    if (tree.kind == SelectorTree::Kind::Prepared) {
        shape.hasBits = tree.prepared->bits();
        shape.hasIds = tree.prepared->ids();
        shape.numIds = shape.hasIds ? tree.prepared->numSelected() : 0;
        return shape;
    }
    shape.hasBits = true;
    shape.bitBytes = std::max<size_t>(filterWords(n), 1) * sizeof(uint32_t);
    if (listIsWorthMaking(n, tree.most, queries)) {
        shape.hasIds = true;
        shape.numIds = tree.most;
        shape.listBytes = std::max<size_t>(tree.most, 1) * sizeof(int32_t);
    }
    return shape;
}

} // namespace

void FilterShape::expectFor(FlatKnnProblem& p) const {
    const uintptr_t nowhere = WorkspaceSlices::kAlignment;
    p.allowedBits =
            hasBits ? reinterpret_cast<const uint32_t*>(nowhere) : nullptr;
    p.allowedIds = hasIds ? reinterpret_cast<const int32_t*>(nowhere) : nullptr;
    p.numAllowed = numIds;
}

FilterShape filterShapeOf(
        const faiss::SearchParameters* params,
        idx_t n,
        idx_t queries,
        int device) {
    if (!params || !params->sel) {
        return {};
    }
    return shapeOf(readSelector(*params->sel, n, device), n, queries);
}

SearchFilter::SearchFilter(
        const GpuContext& context,
        const faiss::SearchParameters* params,
        idx_t n,
        idx_t queries) {
    if (const auto* within = dynamic_cast<const SearchWithin*>(params)) {
        limits_ = within->limits;
        numWithin_ = within->numWithin;
    }
    if (!params || !params->sel) {
        return;
    }
    const SelectorTree tree = readSelector(*params->sel, n, context.device);
    const FilterShape shape = shapeOf(tree, n, queries);
    if (tree.kind == SelectorTree::Kind::Prepared) {
        bits_ = tree.prepared->bits();
        ids_ = tree.prepared->ids();
        numIds_ = shape.numIds;
        return;
    }
    evaluate_(context, tree, shape, n);
}

void SearchFilter::evaluate_(
        const GpuContext& context,
        const SelectorTree& tree,
        const FilterShape& shape,
        idx_t n) {
    const auto allocate = [&](size_t bytes) -> std::shared_ptr<void> {
        auto held = std::make_shared<TemporaryMemory>(
                allocTemporary(context, std::max<size_t>(bytes, 1)));
        return {held, held->get()};
    };
    const SelectorPlace place{context.device, context.stream, allocate};

    ownBits_ = allocTemporary(context, shape.bitBytes);
    auto* bits = static_cast<uint32_t*>(ownBits_.get());
    runSelectorBits(tree, n, bits, place);
    bits_ = bits;
    if (shape.hasIds) {
        ownIds_ = allocTemporary(context, shape.listBytes);
        auto* ids = static_cast<int32_t*>(ownIds_.get());
        runSelectorIds(bits, n, ids, shape.numIds, place);
        ids_ = ids;
        numIds_ = shape.numIds;
    }
}

} // namespace faiss_bits::gpu::detail
