#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchs/common/Keys.h"

namespace faiss_bits::bench {

/// One cell of bench_select_sweep.
struct SweepCell {
    int64_t rows = 0;
    int64_t cols = 0;
    int64_t stride = 0; ///< elements from row to row
    int k = 0;
    DataType type = DataType::Float32;
    Order order = Order::Random;
    bool largest = false;
    uint64_t seed = 0; ///< of its keys

    std::string describe() const;
};

/// What cells keep to. Keys in all are rows * stride.
constexpr int64_t kLeastSweepCols = 16;
constexpr int64_t kMostSweepRows = int64_t(1) << 22;
constexpr int64_t kMostSweepCols = int64_t(1) << 27;
constexpr int64_t kLeastSweepKeys = int64_t(1) << 12;
constexpr int64_t kMostSweepKeys = int64_t(1) << 30;
constexpr int64_t kMostSweepK = int64_t(1) << 20;
constexpr int64_t kMostSweepResults = int64_t(1) << 28; // rows * k
/// What the vectors of a file of 100,000 are enough for.
constexpr int64_t kMostVectorRows = 8000;
constexpr int64_t kMostVectorCols = 90000;
/// Below it no row is sampled, and an adversary has nothing to mislead.
constexpr int64_t kLeastAdversaryCols = int64_t(1) << 12;

/// True if a cell keeps to them.
bool isSweepCell(const SweepCell& cell);

/// `count` cells, the same for the same seed on every machine; a longer list
/// begins as a shorter one. Sizes are of any power of two alike, and mostly
/// none; each order is as likely, and float keys are as many as of 16 bits.
std::vector<SweepCell> drawSweepCells(uint64_t seed, int count);

} // namespace faiss_bits::bench
