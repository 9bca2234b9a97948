#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchs/SweepCells.h"
#include "benchs/common/DeviceData.h"
#include "benchs/common/StructuredKeys.h"
#include "benchs/common/VectorFile.h"

namespace faiss_bits::bench {

/// The sample that runSelect draws for a cell on the current device, if it
/// draws the one that the adversaries know.
SampleLayout sampleOf(const SweepCell& cell);

/// The keys of one cell, as many times as fit 1 GiB (at least once), so that
/// no repeat finds its keys in the L2. Memory is taken once, for all cells.
class SweepKeys {
   public:
    /// `vectors`: for the orders that need some, see VectorFile; or empty.
    SweepKeys(const std::vector<SweepCell>& cells, const std::string& vectors);

    /// Why make() cannot make the keys, or an empty string.
    std::string refusal(const SweepCell& cell) const;

    void make(const SweepCell& cell, const SampleLayout& sample);

    /// Uniform keys in place of the cell's own.
    void makeRandom(const SweepCell& cell);

    /// As the cell says, with its stride.
    const void* ours(int i) const;

    /// Negates what rivals get where the cell asks for the largest. Where there
    /// are no gaps, ours() is negated too.
    void turnForRivals();

    /// Rows without gaps, of which the smallest are wanted.
    const void* rivals(int i) const;

   private:
    void startCell(const SweepCell& cell);
    void makeSlice(const KeyRecipe& recipe, int64_t i);
    void spread();
    bool hasGaps() const {
        return cell_.stride != cell_.cols;
    }
    uint8_t* dense(int64_t i) const {
        return dense_.data() + i % slices_ * denseBytes_;
    }
    uint8_t* strided(int64_t i) const {
        return strided_.data() + i % slices_ * stridedBytes_;
    }

    VectorFile vectors_;
    DeviceArray<uint8_t> dense_;   // [slices][rows, cols]
    DeviceArray<uint8_t> strided_; // [slices][rows, stride], where they differ
    SweepCell cell_;
    int64_t slices_ = 1;
    int64_t denseBytes_ = 0; // of a slice
    int64_t stridedBytes_ = 0;
};

} // namespace faiss_bits::bench
