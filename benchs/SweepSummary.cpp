#include "benchs/SweepSummary.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace faiss_bits::bench {

namespace {

/// A ratio and the cell that has it.
using Line = std::pair<double, std::string>;

void print(std::vector<Line> lines, size_t most) {
    std::sort(lines.begin(), lines.end());
    for (size_t i = 0; i < std::min(most, lines.size()); ++i) {
        std::printf("  %.3f  %s\n", lines[i].first, lines[i].second.c_str());
    }
}

} // namespace

void printSummary(
        const std::vector<SweepResult>& results,
        const std::vector<SweepCell>& cells) {
    std::vector<Line> behind;
    std::vector<Line> slowed;
    for (const SweepResult& result : results) {
        const std::string text = std::to_string(result.cell) + " " +
                cells[result.cell].describe();
        if (result.isBehind()) {
            behind.emplace_back(
                    result.bestMs / result.ours, text + ", " + result.best);
        }
        slowed.emplace_back(result.random / result.ours, text);
    }
    std::printf(
            "behind the best rival in %zu of %zu cells, its time over ours:\n",
            behind.size(),
            results.size());
    print(behind, 40);
    std::printf("slowest by the order of keys, time of random keys over it:\n");
    print(slowed, 15);
}

} // namespace faiss_bits::bench
