#include "faiss_bits/flat/DeviceSelector.h"

#include <bit>

#include <faiss/gpu/utils/DeviceUtils.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/flat/SearchFilter.h"
#include "faiss_bits/flat/SelectorBits.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/knn/filter/FilterBits.h"
#include "kernels/knn/parts/PartsKnn.h"

namespace faiss_bits::gpu {

namespace {

class OwnStream {
   public:
    OwnStream() {
        BITS_CUDA_CHECK(
                cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    }
    OwnStream(const OwnStream&) = delete;
    OwnStream& operator=(const OwnStream&) = delete;
    ~OwnStream() {
        (void)cudaStreamDestroy(stream_);
    }
    operator cudaStream_t() const {
        return stream_;
    }

   private:
    cudaStream_t stream_ = nullptr;
};

int checkedDevice(int device) {
    if (device == -1) {
        detail::requireDevice(0);
        BITS_CUDA_CHECK(cudaGetDevice(&device));
    }
    detail::requireDevice(device);
    return device;
}

} // namespace

DeviceSelector::DeviceSelector(
        const faiss::IDSelector* sel,
        idx_t n,
        int device)
        : n_(n) {
    detail::requireNotNull(sel, "sel");
    detail::requireWithin(n, 0, kMostVectors, "n");
    detail::withFaissErrors([&] {
        device_ = checkedDevice(device);
        const faiss::gpu::DeviceScope scope(device_);
        const detail::SelectorTree tree =
                detail::readSelector(*sel, n, device_);
        const OwnStream stream;
        const detail::SelectorPlace place{
                device_, stream, detail::allocateOnDevice};

        hostBits_.resize(filterWords(n));
        const size_t bytes = hostBits_.size() * sizeof(uint32_t);
        bits_ = detail::allocateOnDevice(bytes);
        auto* bits = static_cast<uint32_t*>(bits_.get());
        detail::runSelectorBits(tree, n, bits, place);
        if (bytes > 0) {
            BITS_CUDA_CHECK(cudaMemcpyAsync(
                    hostBits_.data(),
                    bits,
                    bytes,
                    cudaMemcpyDeviceToHost,
                    stream));
        }
        BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        for (const uint32_t word : hostBits_) {
            numSelected_ += std::popcount(word);
        }
        if (n <= detail::kMostListable &&
            numSelected_ <= detail::mostListed(n)) {
            ids_ = detail::allocateOnDevice(numSelected_ * sizeof(int32_t));
            detail::runSelectorIds(
                    bits,
                    n,
                    static_cast<int32_t*>(ids_.get()),
                    numSelected_,
                    place);
            BITS_CUDA_CHECK(cudaStreamSynchronize(stream));
        }
    });
}

DeviceSelector::~DeviceSelector() = default;

bool DeviceSelector::is_member(idx_t id) const {
    return id >= 0 && id < n_ && ((hostBits_[id / 32] >> (id % 32)) & 1);
}

} // namespace faiss_bits::gpu
