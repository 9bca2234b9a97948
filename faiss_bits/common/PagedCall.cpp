#include "faiss_bits/common/PagedCall.h"

#include <algorithm>

#include <faiss/impl/FaissAssert.h>

#include "kernels/common/Workspace.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Results of no more bytes go through pinned memory together.
constexpr size_t kFewBytes = size_t(64) << 10;

} // namespace

int PagedCall::add_(const char* name, Array array) {
    FAISS_THROW_IF_NOT_FMT(
            arrays_.size() < Page::kMaxArrays, "%s: too many arrays", name);
    if (array.data && !context_.arraysAreOnDevice) {
        const Place place = placeOf(context_, name, array.data);
        array.onHost = place.onHost;
        array.pageable = place.pageable;
    }
    arrays_.reserve(Page::kMaxArrays); // one allocation a call
    arrays_.push_back(array);
    return int(arrays_.size()) - 1;
}

int PagedCall::input(const char* name, const void* data, size_t rowBytes) {
    Array array;
    array.data = const_cast<char*>(static_cast<const char*>(data));
    array.rowBytes = rowBytes;
    return add_(name, array);
}

int PagedCall::columns(
        const char* name,
        const void* data,
        int components,
        size_t elementBytes) {
    Array array;
    array.data = const_cast<char*>(static_cast<const char*>(data));
    array.rowBytes = components * elementBytes;
    array.elementBytes = elementBytes;
    return add_(name, array);
}

int PagedCall::output(
        const char* name,
        void* data,
        size_t rowBytes,
        bool ignored) {
    Array array;
    array.data = static_cast<char*>(data);
    array.rowBytes = rowBytes;
    array.isOutput = true;
    const int number = add_(name, array);
    if (ignored && isOnHost(number)) {
        arrays_[number].data = nullptr;
        arrays_[number].onHost = false;
    }
    return number;
}

void PagedCall::expect_(Place place, size_t rowBytes, bool isOutput) {
    static char nowhere; // not null, and never read
    Array array;
    array.data = &nowhere;
    array.rowBytes = rowBytes;
    array.isOutput = isOutput;
    array.onHost = place.onHost;
    array.pageable = place.pageable;
    arrays_.push_back(array);
    isExpected_ = true;
}

void PagedCall::expectInput(Place place, size_t rowBytes) {
    expect_(place, rowBytes, false);
}

void PagedCall::expectOutput(Place place, size_t rowBytes) {
    expect_(place, rowBytes, true);
}

const PagePlan& PagedCall::plan(const PageLimits& limits) {
    rows_ = limits.rows;
    waits_ = limits.waits;
    PageMemory memory;
    PageLimits all = limits;
    for (const Array& array : arrays_) {
        memory.hostArrays |= array.onHost;
        if (!array.data) {
            all.scratchBytesPerRow += array.rowBytes;
        } else if (array.onHost || array.elementBytes) {
            memory.stagedBytesPerRow += array.rowBytes;
        }
        if (array.onHost && array.pageable) {
            memory.pinnedBytesPerRow += array.rowBytes;
        }
    }
    if (context_.resources) {
        memory.pinnedBytes = context_.resources->getPinnedMemory().second;
    }
    plan_ = planPages(all, memory);
    for (Array& array : arrays_) {
        array.staged = array.onHost || !array.data ||
                (array.elementBytes && plan_.pages > 1);
    }
    return plan_;
}

void PagedCall::run(const PageLimits& limits, const Compute& compute) {
    FAISS_THROW_IF_NOT_MSG(
            !isExpected_, "arrays that are not there yet cannot be used");
    if (limits.rows == 0) {
        return;
    }
    plan(limits);
    allocate_();
    const bool hostArrays =
            std::any_of(arrays_.begin(), arrays_.end(), [](const Array& array) {
                return array.onHost;
            });
    if (!hostArrays) {
        runOnDevice_(compute);
    } else if (plan_.pages == 1) {
        runOnePage_(compute);
    } else {
        runManyPages_(compute);
    }
}

bool PagedCall::anyReturns_() const {
    return std::any_of(arrays_.begin(), arrays_.end(), [](const Array& array) {
        return array.returns();
    });
}

size_t PagedCall::bytesOf_(const Array& array) const {
    return WorkspaceSlices::roundUp(size_t(plan_.rowsPerPage) * array.rowBytes);
}

int PagedCall::slotsOf_(const Array& array) const {
    // What is thrown away needs no second place.
    return plan_.pages > 1 && array.data ? 2 : 1;
}

size_t PagedCall::stagingBytes() const {
    size_t bytes = 0;
    for (const Array& array : arrays_) {
        bytes += array.staged ? slotsOf_(array) * bytesOf_(array) : 0;
    }
    return bytes;
}

/// All staging in one piece, as FAISS's allocator is a stack.
void PagedCall::allocate_() {
    const size_t bytes = stagingBytes();
    if (bytes == 0) {
        return;
    }
    staging_ = allocTemporary(context_, bytes);
    char* next = static_cast<char*>(staging_.get());
    for (Array& array : arrays_) {
        if (array.staged) {
            array.device[0] = next;
            array.device[1] = next + (slotsOf_(array) - 1) * bytesOf_(array);
            next += slotsOf_(array) * bytesOf_(array);
        }
    }
}

/// Half of the pinned memory for each of the two pages, if it is to be had.
void PagedCall::placePinned_() {
    if (!pinned_.take(*context_.resources)) {
        return;
    }
    // FAISS's own calls may have left copies from it under way.
    waitFor(context_.resources->getAsyncCopyStream(context_.device));
    for (int slot = 0; slot < 2; ++slot) {
        char* next = pinned_.data() + slot * (pinned_.bytes() / 2);
        for (Array& array : arrays_) {
            if (array.onHost && array.pageable) {
                array.pinned[slot] = next;
                next += size_t(plan_.rowsPerPage) * array.rowBytes;
            }
        }
    }
}

/// A copy to pageable memory waits, so that two take twice as long as two to
/// pinned memory.
void PagedCall::placeFewResults_() {
    size_t bytes = 0;
    int count = 0;
    for (const Array& array : arrays_) {
        if (array.returns() && array.pageable) {
            bytes += bytesOf_(array);
            ++count;
        }
    }
    if (count < 2 || bytes > kFewBytes || !pinned_.take(*context_.resources) ||
        bytes > pinned_.bytes()) {
        return;
    }
    // FAISS's own calls may have left copies from it under way.
    waitFor(context_.resources->getAsyncCopyStream(context_.device));
    char* next = pinned_.data();
    for (Array& array : arrays_) {
        if (array.returns() && array.pageable) {
            array.pinned[0] = next;
            next += bytesOf_(array);
        }
    }
}

Page PagedCall::pageAt_(idx_t number) const {
    Page page;
    page.first = number * plan_.rowsPerPage;
    page.rows = std::min(plan_.rowsPerPage, rows_ - page.first);
    for (size_t i = 0; i < arrays_.size(); ++i) {
        const Array& array = arrays_[i];
        page.places_[i] = array.staged
                ? array.device[number % 2]
                : array.data + size_t(page.first) * array.rowBytes;
    }
    return page;
}

} // namespace faiss_bits::gpu::detail
