#include "faiss_bits/ivf/FilteredLists.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "faiss_bits/flat/DeviceSelector.h"
#include "faiss_bits/ivf/ListStorage.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Vectors that a selector selects of lists of so many, if each id is there
/// once; of selectors that do not say: few.
idx_t expectedOf(const faiss::IDSelector& selector, idx_t numVectors) {
    constexpr idx_t kFew = 100;
    idx_t selected = numVectors / kFew;
    if (const auto* device = dynamic_cast<const DeviceSelector*>(&selector)) {
        selected = device->numSelected();
    } else if (
            const auto* range =
                    dynamic_cast<const faiss::IDSelectorRange*>(&selector)) {
        // Any two numbers, whose difference has no type.
        selected = idx_t(std::clamp(
                double(range->imax) - double(range->imin),
                0.0,
                double(numVectors)));
    } else if (
            const auto* array =
                    dynamic_cast<const faiss::IDSelectorArray*>(&selector)) {
        selected = idx_t(array->n);
    } else if (
            const auto* batch =
                    dynamic_cast<const faiss::IDSelectorBatch*>(&selector)) {
        selected = idx_t(batch->set.size());
    }
    return std::min(selected, numVectors);
}

} // namespace

FilteredLists::FilteredLists(
        const GpuContext& context,
        const faiss::IDSelector* selector,
        const faiss::gpu::IVFBase& index,
        const IvfKnnProblem& problem,
        ListIds idsOfResults,
        bool anyLists,
        bool mayTest,
        size_t maxBytes)
        : found_(problem) {
    if (!selector) {
        found_.lists.idKind = idsOfResults;
        return;
    }
    const bool counts = countingSelectedPays(
            problem, expectedOf(*selector, problem.lists.numVectors));
    const auto bytesOf = [](const IvfLists& lists) {
        return size_t(ivfFilterWords(lists) + lists.numLists) *
                sizeof(uint32_t);
    };
    if (mayTest && !counts && idsOfResults == problem.lists.idKind &&
        !hostIdsOf(index)) {
        if (const auto test = listIdTestOf(context, *selector)) {
            found_.lists.idTest = *test;
            IvfLists withBits = problem.lists;
            withBits.wordsOfList =
                    ivfWordsOfList(withBits, problem.longestList);
            bytes_ = bytesOf(withBits);
            return;
        }
    }
    filter_ = std::make_unique<ListFilter>(
            context, *selector, problem.lists, index);
    found_.lists = filter_->lists();
    bytes_ = bytesOf(found_.lists);
    found_.lists.idKind = idsOfResults;
    if (counts) {
        count_(context, maxBytes, anyLists);
    }
}

void FilteredLists::count_(
        const GpuContext& context,
        size_t maxBytes,
        bool anyLists) {
    const IvfLists& all = found_.lists;
    WorkspaceSlices measured;
    IvfSelectedCount(all, measured);
    counts_ = allocTemporary(context, measured.used());
    WorkspaceSlices slices(Workspace{counts_.get(), measured.used()});
    const IvfSelectedCount count(all, slices);
    bytes_ += measured.used();
    runIvfCountSelected(all, count, context.stream);
    std::vector<uint32_t> before(size_t(all.numLists) + 1);
    BITS_CUDA_CHECK(cudaMemcpyAsync(
            before.data(),
            count.beforeLists,
            before.size() * sizeof(uint32_t),
            cudaMemcpyDeviceToHost,
            context.stream));
    BITS_CUDA_CHECK(cudaStreamSynchronize(context.stream));

    const idx_t numSelected = before.back();
    if (numSelected == all.numVectors) {
        found_.lists.selectedBits = nullptr;
        found_.lists.firstWords = nullptr;
        found_.lists.wordsOfList = 0;
        return;
    }
    found_.selectedShare =
            double(numSelected) / double(std::max<idx_t>(all.numVectors, 1));
    if (!copyingSelectedPays(found_, numSelected)) {
        return;
    }
    // Rows need no padding, but a query that reads its lists by itself takes
    // longer for them.
    auto layout = ListLayout::Interleaved;
    WorkspaceSlices ofCopy;
    IvfSelectedCopy(all, numSelected, layout, ofCopy);
    if (bytes_ + ofCopy.used() > maxBytes / 2 && ivfPairsMeet(found_)) {
        layout = ListLayout::Rows;
        ofCopy = WorkspaceSlices();
        IvfSelectedCopy(all, numSelected, layout, ofCopy);
    }
    if (bytes_ + ofCopy.used() > maxBytes / 2) {
        return;
    }
    copied_ = allocTemporary(context, std::max<size_t>(ofCopy.used(), 1));
    WorkspaceSlices memory(Workspace{copied_.get(), ofCopy.used()});
    const IvfSelectedCopy copy(all, numSelected, layout, memory);
    bytes_ += ofCopy.used();
    runIvfCopySelected(all, count, copy, context.stream);

    std::vector<idx_t> lengths(size_t(all.numLists));
    for (size_t l = 0; l < lengths.size(); ++l) {
        lengths[l] = idx_t(before[l + 1]) - idx_t(before[l]);
    }
    const idx_t probes = std::min<idx_t>(found_.nprobe, all.numLists);
    std::nth_element(
            lengths.begin(),
            lengths.begin() + (probes - 1),
            lengths.end(),
            std::greater<>());
    found_.longestList =
            *std::max_element(lengths.begin(), lengths.begin() + probes);
    idx_t most = 0;
    for (idx_t l = 0; l < probes; ++l) {
        most += lengths[l];
    }
    found_.mostVectors = anyLists ? found_.nprobe * found_.longestList : most;
    found_.selectedShare = 1;
    found_.lists = copy.lists;
}

} // namespace faiss_bits::gpu::detail
