#include "benchs/common/VectorFile.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "kernels/common/CudaCheck.h"

namespace faiss_bits::bench {

VectorFile::~VectorFile() {
    (void)cudaFree(vectors_);
}

void VectorFile::read(const std::string& path) {
    const bool isBytes = path.ends_with(".bvecs");
    if (!isBytes && !path.ends_with(".fvecs")) {
        throw std::runtime_error(path + ": neither .fvecs nor .bvecs");
    }
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{
            std::istreambuf_iterator<char>(file),
            std::istreambuf_iterator<char>()};
    int32_t d = 0;
    if (bytes.size() >= sizeof(d)) {
        std::memcpy(&d, bytes.data(), sizeof(d));
    }
    const size_t record = sizeof(d) + size_t(d) * (isBytes ? 1 : 4);
    if (d < 1 || bytes.size() % record != 0) {
        throw std::runtime_error(path + ": no vectors of one dimension");
    }
    const size_t count = bytes.size() / record;
    std::vector<float> vectors(count * d);
    for (size_t i = 0; i < count; ++i) {
        const char* from = bytes.data() + i * record + sizeof(d);
        if (isBytes) {
            for (int j = 0; j < d; ++j) {
                vectors[i * d + j] = float(uint8_t(from[j]));
            }
        } else {
            std::memcpy(&vectors[i * d], from, size_t(d) * 4);
        }
    }
    (void)cudaFree(vectors_);
    vectors_ = nullptr;
    BITS_CUDA_CHECK(cudaMalloc(&vectors_, vectors.size() * sizeof(float)));
    BITS_CUDA_CHECK(cudaMemcpy(
            vectors_,
            vectors.data(),
            vectors.size() * sizeof(float),
            cudaMemcpyHostToDevice));
    count_ = int64_t(count);
    d_ = d;
}

std::string VectorFile::refusal(int64_t rows, int64_t cols) const {
    if (count_ == 0) {
        return "order sift needs --sift FILE";
    }
    if (cols > count_ || rows > count_ || rows > 65535) {
        return "the file has " + std::to_string(count_) + " vectors";
    }
    return "";
}

} // namespace faiss_bits::bench
