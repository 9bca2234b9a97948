#include "faiss_bits/words/WordsOnGpu.h"

#include <algorithm>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::detail {

using words::GpuWords;
using words::LetterWords;
using words::Method;
using words::WordOptions;
using words::WordRange;

namespace {

constexpr idx_t kQueries = 65536; // of one run

/// Makes a device the calling thread's own in its scope.
class OnDevice {
   public:
    explicit OnDevice(int device) {
        BITS_CUDA_CHECK(cudaGetDevice(&before_));
        BITS_CUDA_CHECK(cudaSetDevice(device));
    }
    ~OnDevice() {
        (void)cudaSetDevice(before_);
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

   private:
    int before_ = 0;
};

int currentDevice() {
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    return device;
}

uint32_t longestOf(const LetterWords& queries) {
    uint32_t longest = 0;
    for (idx_t i = 0; i < queries.count(); ++i) {
        longest = std::max(longest, queries.length(i));
    }
    return longest;
}

} // namespace

std::string WordsOnGpu::problem() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    (void)cudaGetLastError();
    if (status != cudaSuccess) {
        return cudaGetErrorString(status);
    }
    return count > 0 ? "" : "no CUDA device";
}

WordsOnGpu::WordsOnGpu(const words::WordIndex& index, idx_t mostResults)
        : index_(index),
          // One query has as many results as there are words, at most.
          mostResults_(std::max(mostResults, index.dictionary().size())),
          device_(currentDevice()),
          gpu_(index.dictionary()) {
    BITS_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

WordsOnGpu::~WordsOnGpu() {
    (void)cudaStreamDestroy(stream_);
}

bool WordsOnGpu::takes(
        const LetterWords& queries,
        uint32_t maxDistance,
        const WordOptions& options,
        bool mustBeGpu) const {
    const std::string why = GpuWords::refusal(
            index_.dictionary(),
            options.method,
            longestOf(queries),
            maxDistance);
    BITS_THROW_IF_NOT_FMT(why.empty() || !mustBeGpu, "%s", why.c_str());
    return why.empty();
}

WordRange WordsOnGpu::range(
        const LetterWords& queries,
        uint32_t maxDistance,
        const WordOptions& options) {
    WordRange out;
    out.limits.assign(1, 0);
    inBatches(
            queries,
            maxDistance,
            options,
            [&](const words::DeviceRange& found, idx_t count) {
                const auto before = size_t(out.limits.back());
                const auto total = size_t(found.total);
                out.distances.resize(before + total);
                out.ids.resize(before + total);
                copy(out.distances.data() + before,
                     found.distances,
                     total,
                     cudaMemcpyDeviceToHost);
                copy(out.ids.data() + before,
                     found.ids,
                     total,
                     cudaMemcpyDeviceToHost);
                takeLimits(found, count, out.limits);
            });
    return out;
}

void WordsOnGpu::rangeOnDevice(
        const LetterWords& queries,
        uint32_t maxDistance,
        const WordOptions& options,
        DeviceWordRange& result) {
    std::vector<idx_t> lims(1, 0);
    std::vector<DeviceWordRange::Part> parts;
    inBatches(
            queries,
            maxDistance,
            options,
            [&](const words::DeviceRange& found, idx_t count) {
                if (found.total > 0) {
                    parts.push_back(result.allocate(found.total));
                    copy(parts.back().distances,
                         found.distances,
                         size_t(found.total),
                         cudaMemcpyDeviceToDevice);
                    copy(parts.back().labels,
                         found.ids,
                         size_t(found.total),
                         cudaMemcpyDeviceToDevice);
                }
                takeLimits(found, count, lims);
            });
    result.lims = std::move(lims);
    result.parts = std::move(parts);
}

void WordsOnGpu::copyOf(const WordRange& range, DeviceWordRange& result) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const OnDevice scope(device_);
    std::vector<DeviceWordRange::Part> parts;
    if (!range.ids.empty()) {
        parts.push_back(result.allocate(idx_t(range.ids.size())));
        copy(parts.back().distances,
             range.distances.data(),
             range.ids.size(),
             cudaMemcpyHostToDevice);
        copy(parts.back().labels,
             range.ids.data(),
             range.ids.size(),
             cudaMemcpyHostToDevice);
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream_));
    }
    result.lims = range.limits;
    result.parts = std::move(parts);
}

void WordsOnGpu::inBatches(
        const LetterWords& queries,
        uint32_t maxDistance,
        const WordOptions& options,
        const Take& take) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const OnDevice scope(device_);
    if (options.method == Method::ListOfClusters && !gpu_.hasClusters()) {
        gpu_.setClusters(index_.clusters(options));
    }
    if (options.method == Method::Sss && !gpu_.hasPivots()) {
        gpu_.setPivots(index_.pivots(options));
    }
    idx_t batch = kQueries;
    for (idx_t first = 0; first < queries.count();) {
        const idx_t count = std::min(batch, queries.count() - first);
        try {
            const auto uploaded = gpu_.upload(queries, first, count, stream_);
            take(gpu_.range(
                         uploaded,
                         maxDistance,
                         options.method,
                         mostResults_,
                         stream_),
                 count);
            first += count;
        } catch (const words::TooManyResults&) {
            if (count == 1) {
                throw;
            }
            batch = count / 2;
        }
        if (options.interrupt) {
            options.interrupt();
        }
    }
}

template <class T>
void WordsOnGpu::copy(T* to, const T* from, size_t n, cudaMemcpyKind kind)
        const {
    if (n > 0) {
        BITS_CUDA_CHECK(
                cudaMemcpyAsync(to, from, n * sizeof(T), kind, stream_));
    }
}

void WordsOnGpu::takeLimits(
        const words::DeviceRange& found,
        idx_t count,
        std::vector<idx_t>& limits) const {
    const idx_t before = limits.back();
    const size_t first = limits.size();
    limits.resize(first + size_t(count));
    copy(limits.data() + first,
         found.limits + 1,
         size_t(count),
         cudaMemcpyDeviceToHost);
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream_));
    for (size_t i = first; i < limits.size(); ++i) {
        limits[i] += before;
    }
}

std::string WordsOnGpu::plan(
        const words::WordIndex& index,
        idx_t queryLength,
        idx_t maxDistance,
        const WordOptions& options,
        const std::string& onCpu) const {
    const auto length = uint32_t(std::min<idx_t>(queryLength, INT32_MAX));
    const uint32_t most = words::requireMaxDistance(maxDistance);
    if (!GpuWords::refusal(index.dictionary(), options.method, length, most)
                 .empty()) {
        return onCpu;
    }
    return std::string(nameOf(GpuWords::choose(options.method, length, most))) +
            ", on the GPU";
}

} // namespace faiss_bits::detail
