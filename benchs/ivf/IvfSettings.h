#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchs/common/Options.h"

namespace faiss_bits::bench {

/// What bench_ivf measures.
struct IvfSettings {
    int64_t n = 1 << 20;
    int d = 128;
    std::vector<std::string> indexes = {"ivf_flat"};
    std::vector<int64_t> nlists = {1024, 4096};
    std::vector<int64_t> nprobes = {8, 32, 128};
    std::vector<int64_t> qs = {1, 16, 128, 1024, 10240};
    std::vector<int64_t> ks = {10, 100, 1000};
    std::string data = "uniform";
    std::vector<double> filters; ///< shares of the ids; none: no filters

    int sweepCells = 0; ///< random cells in place of all this
    uint64_t seed = 0;
    std::vector<int64_t> only; ///< cells of the sweep, none: all
    std::string sift;          ///< .bvecs
};

/// Each writes its JSON and returns how many answers were wrong.
int runIvfGrid(const Options& options, const IvfSettings& settings);
int runIvfFilters(const Options& options, const IvfSettings& settings);
int runIvfSweep(const Options& options, const IvfSettings& settings);

} // namespace faiss_bits::bench
