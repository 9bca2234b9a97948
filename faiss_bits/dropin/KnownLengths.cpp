#include "faiss_bits/dropin/KnownLengths.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <list>

#include "faiss_bits/dropin/Device.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::dropin {

namespace {

constexpr size_t kMostKept = 8;
/// Of what a query had, that one may have more before it is searched again.
constexpr idx_t kSparePart = 16;

size_t bytesOf(const IvfLists& lists) {
    return size_t(lists.numLists) *
            (lists.lengths64 ? sizeof(int64_t) : sizeof(int32_t));
}

struct Entry {
    int device = 0;
    const void* at = nullptr;
    idx_t numLists = 0;
    bool lengths64 = false;
    ListLengths found;
    std::shared_ptr<KnownLengths> known; // null: of one call

    bool isOf(int ofDevice, const IvfLists& lists) const {
        return device == ofDevice && at == lists.lengths &&
                numLists == lists.numLists && lengths64 == lists.lengths64;
    }
};

/// The last used one first.
struct Kept {
    std::mutex mutex;
    std::list<Entry> entries;

    // Never destroyed: the CUDA driver may be gone by then.
    static Kept& all() {
        static auto& one = *new Kept;
        return one;
    }

    /// Under the mutex.
    std::list<Entry>::iterator find(int device, const IvfLists& lists) {
        return std::find_if(
                entries.begin(), entries.end(), [&](const Entry& entry) {
                    return entry.isOf(device, lists);
                });
    }
};

int deviceOfThread() {
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    return device;
}

} // namespace

KnownLengths::KnownLengths(
        const IvfLists& lists,
        const ListLengths& found,
        cudaStream_t stream)
        : found_(found) {
    const RelaxedCapture relaxed;
    BITS_CUDA_CHECK(cudaMalloc(&lengths_, bytesOf(lists)));
    try {
        BITS_CUDA_CHECK(cudaMemcpyAsync(
                lengths_,
                lists.lengths,
                bytesOf(lists),
                cudaMemcpyDeviceToDevice,
                stream));
        // Searches on other streams may read it at once.
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
    } catch (const Error&) {
        (void)cudaFree(lengths_);
        throw;
    }
}

KnownLengths::~KnownLengths() {
    const RelaxedCapture relaxed;
    (void)cudaFree(lengths_);
}

bool KnownLengths::isTrusted(int nprobe, idx_t& most) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto seen = mostProbed_.find(nprobe);
    if (seen == mostProbed_.end()) {
        return false;
    }
    most = std::min(
            seen->second + seen->second / kSparePart,
            std::min(idx_t(nprobe) * found_.longest, found_.total));
    return true;
}

void KnownLengths::confirm(int nprobe, idx_t mostProbed) {
    const std::lock_guard<std::mutex> lock(mutex_);
    idx_t& most = mostProbed_[nprobe];
    most = std::max(most, mostProbed);
}

std::shared_ptr<KnownLengths> knownLengthsOf(const IvfLists& lists) {
    const int device = deviceOfThread();
    Kept& kept = Kept::all();
    const std::lock_guard<std::mutex> lock(kept.mutex);
    const auto entry = kept.find(device, lists);
    if (entry == kept.entries.end()) {
        return nullptr;
    }
    kept.entries.splice(kept.entries.begin(), kept.entries, entry);
    return entry->known;
}

void rememberLengths(
        const IvfLists& lists,
        const ListLengths& found,
        cudaStream_t stream) {
    if (lists.numLists > KnownLengths::kMostLists) {
        return;
    }
    const int device = deviceOfThread();
    Kept& kept = Kept::all();
    const auto isSame = [&] {
        const std::lock_guard<std::mutex> lock(kept.mutex);
        const auto entry = kept.find(device, lists);
        return entry != kept.entries.end() &&
                entry->found.longest == found.longest &&
                entry->found.total == found.total;
    };
    std::shared_ptr<KnownLengths> known;
    if (isSame()) {
        try {
            known = std::make_shared<KnownLengths>(lists, found, stream);
        } catch (const Error&) {
            return; // each search asks, as before
        }
    }
    forgetLengths(lists);
    Entry last; // goes without the mutex: it waits for the device
    const std::lock_guard<std::mutex> lock(kept.mutex);
    kept.entries.push_front(
            {device,
             lists.lengths,
             lists.numLists,
             lists.lengths64,
             found,
             known});
    if (kept.entries.size() > kMostKept) {
        last = std::move(kept.entries.back());
        kept.entries.pop_back();
    }
}

void forgetLengths(const IvfLists& lists) {
    const int device = deviceOfThread();
    Entry gone;
    Kept& kept = Kept::all();
    const std::lock_guard<std::mutex> lock(kept.mutex);
    const auto entry = kept.find(device, lists);
    if (entry != kept.entries.end()) {
        gone = std::move(*entry);
        kept.entries.erase(entry);
    }
}

} // namespace faiss_bits::dropin
