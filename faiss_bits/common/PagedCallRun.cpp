// The pages of a PagedCall: copies, and what waits for what.

#include <algorithm>
#include <cstring>
#include <future>
#include <limits>
#include <optional>

#include "faiss_bits/common/HostParts.h"
#include "faiss_bits/common/PagedCall.h"
#include "kernels/common/CudaCheck.h"

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

} // namespace

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
