#include "faiss_bits/common/PagedCall.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <limits>
#include <mutex>
#include <optional>
#include <set>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/HostParts.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/common/Workspace.h"

namespace faiss_bits::gpu::detail {

namespace {

/// Components of columns, one after another on the host.
void gatherColumns(
        char* to,
        const char* from,
        idx_t components,
        size_t bytes,
        size_t pitch) {
    for (idx_t c = 0; c < components; ++c) {
        std::memcpy(to + c * bytes, from + c * pitch, bytes);
    }
}

/// The same by the device's copy engine.
void copyColumns(
        char* to,
        const char* from,
        idx_t components,
        size_t bytes,
        size_t pitch,
        cudaStream_t stream) {
    if (pitch <= size_t(std::numeric_limits<int>::max())) {
        BITS_CUDA_CHECK(cudaMemcpy2DAsync(
                to,
                bytes,
                from,
                pitch,
                bytes,
                components,
                cudaMemcpyDefault,
                stream));
        return;
    }
    for (idx_t c = 0; c < components; ++c) { // beyond CUDA's largest pitch
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                to + c * bytes,
                from + c * pitch,
                bytes,
                cudaMemcpyDefault,
                stream));
    }
}

/// Results of no more bytes go through pinned memory together.
constexpr size_t kFewBytes = size_t(64) << 10;

/// Pinned memory that calls have. Resources have one piece of it, and may serve
/// several devices, each with a thread of its own.
std::mutex pinnedMutex;
std::set<const void*>& pinnedInUse() {
    static auto& all = *new std::set<const void*>; // calls end late
    return all;
}

} // namespace

bool PagedCall::Pinned::take(const GpuContext& context) {
    if (data) {
        return true;
    }
    const auto memory = context.resources->getPinnedMemory();
    const std::lock_guard<std::mutex> lock(pinnedMutex);
    if (!memory.first || !pinnedInUse().insert(memory.first).second) {
        return false;
    }
    data = static_cast<char*>(memory.first);
    bytes = memory.second;
    return true;
}

PagedCall::Pinned::~Pinned() {
    if (data) {
        const std::lock_guard<std::mutex> lock(pinnedMutex);
        pinnedInUse().erase(data);
    }
}

int PagedCall::add_(const char* name, Array array) {
    FAISS_THROW_IF_NOT_FMT(
            arrays_.size() < Page::kMaxArrays, "%s: too many arrays", name);
    if (array.data && !context_.arraysAreOnDevice) {
        const Place place = placeOf(context_, name, array.data);
        array.onHost = place.onHost;
        array.pageable = place.pageable;
    }
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
    if (!pinned_.take(context_)) {
        return;
    }
    // FAISS's own calls may have left copies from it under way.
    waitFor(context_.resources->getAsyncCopyStream(context_.device));
    for (int slot = 0; slot < 2; ++slot) {
        char* next = pinned_.data + slot * (pinned_.bytes / 2);
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
    if (count < 2 || bytes > kFewBytes || !pinned_.take(context_) ||
        bytes > pinned_.bytes) {
        return;
    }
    // FAISS's own calls may have left copies from it under way.
    waitFor(context_.resources->getAsyncCopyStream(context_.device));
    char* next = pinned_.data;
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

void PagedCall::copyIn_(const Page& page, int slot, cudaStream_t stream) {
    for (const Array& array : arrays_) {
        if (array.isOutput || !array.staged) {
            continue;
        }
        const size_t bytes = size_t(page.rows) * array.rowBytes;
        const char* source = array.data;
        if (array.elementBytes) {
            const idx_t components = array.rowBytes / array.elementBytes;
            const size_t width = size_t(page.rows) * array.elementBytes;
            const size_t pitch = size_t(rows_) * array.elementBytes;
            source += size_t(page.first) * array.elementBytes;
            if (!array.pinned[slot]) {
                copyColumns(
                        array.device[slot],
                        source,
                        components,
                        width,
                        pitch,
                        stream);
                continue;
            }
            gatherColumns(array.pinned[slot], source, components, width, pitch);
            source = array.pinned[slot];
        } else {
            source += size_t(page.first) * array.rowBytes;
            if (array.pinned[slot]) {
                copyHostBytes(array.pinned[slot], source, bytes);
                source = array.pinned[slot];
            }
        }
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                array.device[slot], source, bytes, cudaMemcpyDefault, stream));
    }
}

/// Waits until the results are where the caller wants them.
void PagedCall::copyBack_(const Page& page, int slot, cudaStream_t stream)
        const {
    std::vector<HostCopy> copies;
    for (const Array& array : arrays_) {
        if (!array.returns()) {
            continue;
        }
        char* const to = array.data + size_t(page.first) * array.rowBytes;
        const size_t bytes = size_t(page.rows) * array.rowBytes;
        if (array.pinned[slot]) {
            copies.push_back({to, array.pinned[slot], bytes});
        }
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                array.pinned[slot] ? array.pinned[slot] : to,
                array.device[slot],
                bytes,
                cudaMemcpyDefault,
                stream));
    }
    waitFor(stream);
    copyHostBytes(copies);
}

void PagedCall::runOnDevice_(const Compute& compute) {
    for (idx_t i = 0; i < plan_.pages; ++i) {
        const Page page = pageAt_(i);
        // Only columns of more pages than one are staged here.
        copyIn_(page, int(i % 2), context_.stream);
        compute(page);
    }
}

/// As few calls as possible: most searches have few queries.
void PagedCall::runOnePage_(const Compute& compute) {
    const bool returns = anyReturns_();
    if (plan_.pinned) {
        placePinned_();
    } else if (returns) {
        placeFewResults_();
    }
    // Pageable memory has been read when its copy returns.
    const bool readsOn =
            std::any_of(arrays_.begin(), arrays_.end(), [](const Array& array) {
                return array.onHost && !array.isOutput &&
                        (!array.pageable || array.pinned[0]);
            });
    ScopedWait guard({context_.stream});
    const Page page = pageAt_(0);
    copyIn_(page, 0, context_.stream);
    std::optional<CudaEvent> copied;
    if (readsOn && !returns) {
        copied.emplace().record(context_.stream);
    }
    compute(page);
    if (returns) {
        if (plan_.isLong) {
            // A copy to pageable memory would wait without asking.
            waitInterruptibly([&] { return isIdle(context_.stream); });
        }
        copyBack_(page, 0, context_.stream);
    } else if (copied) {
        copied->wait();
    }
    guard.dismiss();
}

void PagedCall::runManyPages_(const Compute& compute) {
    const cudaStream_t copyStream =
            context_.resources->getAsyncCopyStream(context_.device);
    if (plan_.pinned) {
        placePinned_();
    }
    std::array<CudaEvent, 2> copied;
    std::array<CudaEvent, 2> computed;
    ScopedWait guard({copyStream, context_.stream});

    // Staging is ours from here on in the order of the context's stream.
    computed[0].record(context_.stream);
    computed[0].holdUp(copyStream);
    copyIn_(pageAt_(0), 0, copyStream);
    copied[0].record(copyStream);
    for (idx_t i = 0; i < plan_.pages; ++i) {
        const int slot = int(i % 2);
        const int other = 1 - slot;
        // The page before goes, the next one comes.
        const auto turnOver = [&] {
            if (i > 0) {
                copyBack_(pageAt_(i - 1), other, copyStream);
            }
            if (i + 1 < plan_.pages) {
                copyIn_(pageAt_(i + 1), other, copyStream);
                copied[other].record(copyStream);
            }
        };
        std::future<void> turning; // waits where `compute` throws
        if (waits_) {
            throwIfInterrupted();
            turning = std::async(std::launch::async, [&] {
                BITS_CUDA_CHECK(cudaSetDevice(context_.device));
                if (i > 0) {
                    computed[other].wait();
                }
                turnOver();
            });
        }
        copied[slot].holdUp(context_.stream);
        compute(pageAt_(i));
        if (waits_) {
            turning.get();
        }
        computed[slot].record(context_.stream);
        if (!waits_) {
            if (i > 0) {
                waitInterruptibly([&] { return computed[other].isDone(); });
            }
            turnOver();
        }
    }
    const idx_t last = plan_.pages - 1;
    if (anyReturns_()) {
        waitInterruptibly([&] { return computed[last % 2].isDone(); });
    }
    // Without results on the host: until the last rows have been read.
    copyBack_(pageAt_(last), int(last % 2), copyStream);
    guard.dismiss();
}

} // namespace faiss_bits::gpu::detail
