#include "tests/dropin/OurTensor.h"

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

} // namespace faiss_bits::test
