#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/common/Types.h"

namespace faiss_bits::bench {

/// Vectors of a file, on the device, and rows of real distances from them.
class VectorFile {
   public:
    VectorFile() = default;
    VectorFile(const VectorFile&) = delete;
    VectorFile& operator=(const VectorFile&) = delete;
    ~VectorFile();

    /// Reads PATH.fvecs or PATH.bvecs (a vector is its dimension as a 32-bit
    /// number, then its components), all vectors of one dimension. Throws
    /// std::runtime_error that names the file.
    void read(const std::string& path);

    /// Why fill() cannot make rows x cols keys, or an empty string.
    std::string refusal(int64_t rows, int64_t cols) const;

    /// Squared L2 distances of the last `rows` vectors of the file, the
    /// queries, to its first `cols`. Waits.
    void fill(void* keys, DataType type, int64_t rows, int64_t cols) const;

    /// The same with the `cols` vectors cluster by cluster: sorted by the
    /// nearest of 256 of them, which the seed picks. Waits.
    void fillClustered(
            void* keys,
            DataType type,
            int64_t rows,
            int64_t cols,
            uint64_t seed) const;

   private:
    /// Number of the nearest center of each of the first `count` vectors.
    std::vector<uint32_t> nearestCenters(
            const std::vector<uint32_t>& centers,
            int64_t count) const;
    void fillInOrder(
            void* keys,
            DataType type,
            int64_t rows,
            int64_t cols,
            const uint32_t* order) const;

    float* vectors_ = nullptr; // [count_, d_], on the device
    int64_t count_ = 0;
    int d_ = 0;
};

} // namespace faiss_bits::bench
