/// Times GpuIndexBitsIVFFlat, GpuIndexBitsIVFScalarQuantizer and
/// GpuIndexBitsIVFPQ against FAISS's classes: over a grid, with filters, or in
/// random cells. benchs/README.md says how.

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "benchs/common/Options.h"
#include "benchs/ivf/IvfIndexes.h"
#include "benchs/ivf/IvfSettings.h"

namespace faiss_bits::bench {
namespace {

int runMain(int argc, char** argv) {
    IvfSettings settings;
    std::vector<int64_t> ns;
    std::vector<int64_t> ds;
    std::vector<int64_t> cells;
    std::vector<int64_t> seeds;
    auto numbers = [](std::vector<int64_t>& list) {
        return [&list](const std::string& v) { list = parseNumbers(v); };
    };
    const Options options = parseOptions(
            argc,
            argv,
            {{"--n", "vectors (default: 2^20)", numbers(ns)},
             {"--d", "dimensions (default: 128)", numbers(ds)},
             {"--indexes",
              "ivf_flat (default), ivf_sq8, ivf_sq6, ivf_sq4, ivf_fp16, "
              "ivf_pqM",
              [&](const std::string& v) { settings.indexes = splitList(v); }},
             {"--nlists", "lists", numbers(settings.nlists)},
             {"--nprobes", "lists of a query", numbers(settings.nprobes)},
             {"--qs", "queries a call", numbers(settings.qs)},
             {"--ks", "neighbours", numbers(settings.ks)},
             {"--data",
              "uniform (default), clustered, walk, duplicates or far",
              [&](const std::string& v) { settings.data = v; }},
             {"--filters",
              "shares of the ids that are allowed, such as 0.01,0.5: ours "
              "alone, with filters and without",
              [&](const std::string& v) { settings.filters = parseReals(v); }},
             {"--sweep",
              "so many random cells in place of all",
              numbers(cells)},
             {"--seed", "of random cells (default: a new one)", numbers(seeds)},
             {"--only", "these of the random cells", numbers(settings.only)},
             {"--sift",
              ".bvecs, for random cells of real vectors",
              [&](const std::string& v) { settings.sift = v; }}});
    options.requireRivals({"faiss"});
    for (const std::string& name : settings.indexes) {
        parseIvfKind(name); // or exits
    }
    settings.n = ns.empty() ? settings.n : ns[0];
    settings.d = ds.empty() ? settings.d : int(ds[0]);
    settings.sweepCells = cells.empty() ? 0 : int(cells[0]);
    settings.seed = seeds.empty() ? std::random_device()() : uint64_t(seeds[0]);
    const auto run = settings.sweepCells > 0 ? runIvfSweep
            : settings.filters.empty()       ? runIvfGrid
                                             : runIvfFilters;
    return run(options, settings) == 0 ? 0 : 1;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
