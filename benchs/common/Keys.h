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
    Sift,       ///< squared L2 distances between vectors of a file

    // Of bench_select_sweep; StructuredKeys.cu has the formulas. Every row has
    // periods, places and lengths of its own.
    Clustered,  ///< runs of random lengths, each around a value of its own
    RandomWalk, ///< each key is the one before and a random step
    SawTooth,   ///< a straight line again and again
    OrganPipe,  ///< down to a place and up again, or the reverse
    BestRun,    ///< uniform, and one run of about k columns that are the best
    Periodic,   ///< the same random keys again and again
    HeavyTail,  ///< 1 / u^4 of uniform u
    Exponents,  ///< either sign, and any power of two that the type has
    MostlyInf,  ///< 999 of 1000 are +infinity, else uniform
    SiftClustered,  ///< Sift, with the vectors cluster by cluster
    AdversaryBest,  ///< uniform, the best where the sample looks
    AdversaryWorst, ///< uniform, the worst where the sample looks
};

const std::vector<Order>& allOrders();
std::string nameOf(Order order);
std::string nameOf(DataType type);

/// True if the keys are distances between vectors of a file (VectorFile.h).
constexpr bool needsVectors(Order order) {
    return order == Order::Sift || order == Order::SiftClustered;
}

/// True for the orders that fillKeys makes.
constexpr bool isPlain(Order order) {
    return order < Order::Sift;
}

/// The reverse of nameOf. Throw std::invalid_argument that lists the names.
Order orderOf(const std::string& name);
DataType dataTypeOf(const std::string& name);

/// Fills keys [rows, cols] on the device, and waits. Types of 16 bits have few
/// values: ordered rows of them have many ties. For plain orders only.
void fillKeys(
        void* keys,
        DataType type,
        int64_t rows,
        int64_t cols,
        Order order,
        uint64_t seed);

} // namespace faiss_bits::bench
