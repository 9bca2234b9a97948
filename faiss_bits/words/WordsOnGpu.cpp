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
    const std::lock_guard<std::mutex> lock(mutex_);
    const OnDevice scope(device_);
    if (options.method == Method::ListOfClusters && !gpu_.hasClusters()) {
        gpu_.setClusters(index_.clusters(options));
    }
    if (options.method == Method::Sss && !gpu_.hasPivots()) {
        gpu_.setPivots(index_.pivots(options));
    }
    WordRange out;
    out.limits.assign(1, 0);
    idx_t batch = kQueries;
    for (idx_t first = 0; first < queries.count();) {
        const idx_t count = std::min(batch, queries.count() - first);
        try {
            rangePart(queries, first, count, maxDistance, options.method, out);
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
    return out;
}

void WordsOnGpu::rangePart(
        const LetterWords& queries,
        idx_t first,
        idx_t count,
        uint32_t maxDistance,
        Method method,
        WordRange& out) {
    const auto uploaded = gpu_.upload(queries, first, count, stream_);
    const auto found =
            gpu_.range(uploaded, maxDistance, method, mostResults_, stream_);
    const auto before = size_t(out.limits.back());
    const size_t limitsBefore = out.limits.size();
    out.limits.resize(limitsBefore + size_t(count));
    out.distances.resize(before + size_t(found.total));
    out.ids.resize(before + size_t(found.total));
    const auto copy = [&](auto* to, const auto* from, size_t n) {
        if (n > 0) {
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    to,
                    from,
                    n * sizeof(*to),
                    cudaMemcpyDeviceToHost,
                    stream_));
        }
    };
    copy(out.limits.data() + limitsBefore, found.limits + 1, size_t(count));
    copy(out.distances.data() + before, found.distances, size_t(found.total));
    copy(out.ids.data() + before, found.ids, size_t(found.total));
    BITS_CUDA_CHECK(cudaStreamSynchronize(stream_));
    for (size_t i = limitsBefore; i < out.limits.size(); ++i) {
        out.limits[i] += idx_t(before);
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
