#include "benchs/SweepCells.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

namespace faiss_bits::bench {

namespace {

/// The distributions of the standard library differ between implementations.
class Draw {
   public:
    explicit Draw(uint64_t seed) : bits_(seed) {}

    uint64_t bits() {
        return bits_();
    }

    /// From 0 to count - 1.
    int below(size_t count) {
        return int(bits_() % count);
    }

    bool oneIn(int count) {
        return below(count) == 0;
    }

    int64_t logUniform(int64_t least, int64_t most) {
        const double u = double(bits_() >> 11) * 0x1p-53;
        const double value =
                double(least) * std::exp2(u * std::log2((most + 1.0) / least));
        return std::clamp(int64_t(value), least, most);
    }

   private:
    std::mt19937_64 bits_;
};

bool isAdversary(Order order) {
    return order == Order::AdversaryBest || order == Order::AdversaryWorst;
}

/// Half of the cells have rows without gaps. The others have gaps of any size
/// up to a quarter of the row, or rows that start at multiples of 16 elements.
int64_t drawStride(Draw& draw, int64_t cols) {
    if (draw.oneIn(2)) {
        return cols;
    }
    if (draw.oneIn(4)) {
        return (cols + 15) / 16 * 16;
    }
    return cols + draw.logUniform(1, cols / 4);
}

int64_t drawK(Draw& draw, int64_t rows, int64_t cols) {
    const int64_t most =
            std::min({cols, kMostSweepK, kMostSweepResults / rows});
    if (draw.oneIn(16)) {
        return most - draw.below(2);
    }
    return draw.logUniform(1, most);
}

SweepCell drawCell(Draw& draw) {
    const std::vector<DataType> types = {
            DataType::Float32,
            DataType::Float32,
            DataType::Float16,
            DataType::BFloat16};
    SweepCell cell;
    cell.order = allOrders()[draw.below(allOrders().size())];
    cell.type = types[draw.below(types.size())];
    cell.largest = draw.oneIn(3);
    cell.seed = draw.bits() >> 16;
    const bool fromFile = needsVectors(cell.order);
    do {
        cell.rows =
                draw.logUniform(1, fromFile ? kMostVectorRows : kMostSweepRows);
        cell.cols = draw.logUniform(
                isAdversary(cell.order) ? kLeastAdversaryCols : kLeastSweepCols,
                fromFile ? kMostVectorCols : kMostSweepCols);
        cell.stride = drawStride(draw, cell.cols);
        cell.k = int(drawK(draw, cell.rows, cell.cols));
    } while (!isSweepCell(cell));
    return cell;
}

} // namespace

std::string SweepCell::describe() const {
    char text[160];
    std::snprintf(
            text,
            sizeof(text),
            "%lld x %lld (%lld) k=%d %s %s %s",
            (long long)rows,
            (long long)cols,
            (long long)stride,
            k,
            largest ? "largest" : "smallest",
            nameOf(type).c_str(),
            nameOf(order).c_str());
    return text;
}

bool isSweepCell(const SweepCell& cell) {
    const int64_t keys = cell.rows * cell.stride;
    const bool fromFile = needsVectors(cell.order);
    return cell.rows >= 1 && cell.rows <= kMostSweepRows &&
            cell.cols >= kLeastSweepCols && cell.cols <= kMostSweepCols &&
            cell.stride >= cell.cols &&
            cell.rows * cell.cols >= kLeastSweepKeys &&
            keys <= kMostSweepKeys && cell.k >= 1 && cell.k <= cell.cols &&
            cell.k <= kMostSweepK && cell.rows * cell.k <= kMostSweepResults &&
            (!fromFile ||
             (cell.rows <= kMostVectorRows && cell.cols <= kMostVectorCols));
}

std::vector<SweepCell> drawSweepCells(uint64_t seed, int count) {
    Draw draw(seed);
    std::vector<SweepCell> cells;
    for (int i = 0; i < count; ++i) {
        cells.push_back(drawCell(draw));
    }
    return cells;
}

} // namespace faiss_bits::bench
