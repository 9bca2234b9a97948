#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/common/Types.h"

namespace faiss_bits::bench {

/// Order of the keys along every row, or what they are.
enum class Order {
    Random,     ///< uniform in (0, 1] (cuRAND's Philox)
    Ascending,  ///< a straight line; whole numbers where the type has enough
    Descending, ///< the same line from its other end
    Equal,      ///< 0.5 everywhere
    Few,        ///< 16 distinct values, each as likely
    HalfInf,    ///< +infinity by a coin, else uniform
    Nan,        ///< one in ten is NaN (of positive sign), else uniform
    Sift        ///< squared L2 distances between vectors of a file
};

const std::vector<Order>& allOrders();
std::string nameOf(Order order);
std::string nameOf(DataType type);

/// The reverse of nameOf. Throw std::invalid_argument that lists the names.
Order orderOf(const std::string& name);
DataType dataTypeOf(const std::string& name);

/// Fills keys [rows, cols] on the device, and waits. Types of 16 bits have few
/// values: ordered rows of them have many ties. Not for Order::Sift.
void fillKeys(
        void* keys,
        DataType type,
        int64_t rows,
        int64_t cols,
        Order order,
        uint64_t seed);

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

   private:
    float* vectors_ = nullptr; // [count_, d_], on the device
    int64_t count_ = 0;
    int d_ = 0;
};

} // namespace faiss_bits::bench
