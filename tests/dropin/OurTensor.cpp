#include "tests/dropin/OurTensor.h"

#include <algorithm>
#include <iterator>

#include "faiss_bits/dropin/FaissFunctions.h"

namespace faiss_bits::test {

namespace {

template <class Tensor>
OurTensor read(const void* memory, int dimensions) {
    const auto& tensor = *static_cast<const Tensor*>(memory);
    OurTensor result;
    result.bytes = sizeof(Tensor);
    result.data = tensor.data_;
    for (int i = 0; i < dimensions; ++i) {
        result.sizes[i] = tensor.size_[i];
        result.strides[i] = tensor.stride_[i];
    }
    return result;
}

template <class T>
OurArray readArray(const void* memory) {
    const auto& array =
            *static_cast<const faiss::gpu::DeviceVector<T>*>(memory);
    OurArray result;
    result.bytes = sizeof(array);
    result.resources = array.res_;
    result.memoryBytes = sizeof(array.alloc_);
    result.memoryResources = array.alloc_.res;
    result.memoryDevice = array.alloc_.device;
    result.memoryStream = array.alloc_.stream;
    result.data = array.alloc_.data;
    result.dataBytes = array.alloc_.size;
    result.size = array.num_;
    result.capacity = array.capacity_;
    result.device = array.allocInfo_.device;
    return result;
}

} // namespace

OurTensor readOurMatrix(const void* tensor, size_t indexBytes) {
    return indexBytes == 4
            ? read<faiss::gpu::Matrix<float, int>>(tensor, 2)
            : read<faiss::gpu::Matrix<float, int64_t>>(tensor, 2);
}

OurTensor readOurVector(const void* tensor, size_t indexBytes) {
    return indexBytes == 4
            ? read<faiss::gpu::Vector<float, int>>(tensor, 1)
            : read<faiss::gpu::Vector<float, int64_t>>(tensor, 1);
}

OurArray readOurPointers(const void* array) {
    return readArray<void*>(array);
}

OurArray readOurLengths(const void* array, size_t lengthBytes) {
    return lengthBytes == 4 ? readArray<int>(array) : readArray<int64_t>(array);
}

void writeOurArray(void* memory, const OurArray& what) {
    auto& array = *static_cast<faiss::gpu::DeviceVector<void*>*>(memory);
    array.alloc_.data = what.data;
    array.num_ = what.size;
    array.capacity_ = what.capacity;
}

OurNumbers ourNumbers() {
    return {faiss::METRIC_L2,
            faiss::METRIC_INNER_PRODUCT,
            faiss::gpu::INDICES_CPU,
            faiss::gpu::INDICES_IVF,
            faiss::gpu::INDICES_32_BIT,
            faiss::gpu::INDICES_64_BIT};
}

OurQuantizer readOurQuantizer(const void* quantizer) {
    const auto& q =
            *static_cast<const faiss::gpu::ScalarQuantizerMemory*>(quantizer);
    return {q.d_,
            q.codeSize_,
            q.type_,
            q.bits_,
            q.trainedBegin_,
            size_t(q.trainedEnd_ - q.trainedBegin_)};
}

bool areRangesKnownAt(size_t bytes) {
    const auto& all = faiss::gpu::kScalarRangesAt;
    return std::find(std::begin(all), std::end(all), bytes) != std::end(all);
}

size_t bytesOfOurRanges(size_t indexBytes) {
    return indexBytes == 4 ? sizeof(faiss::gpu::ScalarRangesMemory<int>)
                           : sizeof(faiss::gpu::ScalarRangesMemory<int64_t>);
}

} // namespace faiss_bits::test
