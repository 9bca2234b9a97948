/// Times what the figures of Hanak 2023 (5.2 to 5.7, 5.10, 5.11) and Tang 2015
/// (6 to 9, Table I) show, on this GPU. benchs/plot_papers.py draws them.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "kernels/select/Select.h"
#include "research/benchs/QueueFigures.h"

namespace faiss_bits::bench {
namespace {

int multiprocessorCount() {
    int device = 0;
    int count = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    BITS_CUDA_CHECK(cudaDeviceGetAttribute(
            &count, cudaDevAttrMultiProcessorCount, device));
    return count;
}

class PaperBench {
   public:
    /// A cell that takes longer than maxMs is left out.
    PaperBench(const Options& options, double maxMs)
            : options_(options),
              maxMs_(maxMs),
              budget_(options.maxSeconds),
              bandwidth_(measureReadBandwidth()),
              report_(options.out, collectMeta(options, bandwidth_)),
              keys_(kPaperKeys),
              ids_(kSingleRow) {
        // Every shape is a piece of the same random keys.
        fillKeys(
                keys_.data(),
                DataType::Float32,
                1,
                kPaperKeys,
                Order::Random,
                1);
        std::vector<int32_t> ids(kSingleRow);
        std::iota(ids.begin(), ids.end(), 0);
        BITS_CUDA_CHECK(cudaMemcpy(
                ids_.data(),
                ids.data(),
                ids.size() * sizeof(int32_t),
                cudaMemcpyHostToDevice));
    }

    std::vector<PaperCell> cells() const {
        return paperCells(ids_.data());
    }

    void run(const std::vector<PaperCell>& cells) {
        for (size_t i = 0; i < cells.size(); ++i) {
            if (budget_.isSpent()) {
                std::printf(
                        "--max-seconds is spent: %zu of %zu cells left out\n",
                        cells.size() - i,
                        cells.size());
                break;
            }
            runCell(cells[i]);
        }
        std::printf(
                "%zu rows in %s, %.0f s, %d wrong, %d refused, %d too slow\n",
                report_.size(),
                options_.out.c_str(),
                budget_.seconds(),
                wrong_,
                refused_,
                slow_);
    }

    bool isRight() const {
        return wrong_ == 0 && refused_ == 0;
    }

   private:
    void runCell(const PaperCell& cell) {
        const std::string key = cell.key();
        auto found = measured_.find(key);
        if (found == measured_.end()) {
            found = measured_.emplace(key, measure(cell)).first;
        }
        const double ms = found->second;
        if (ms <= 0) {
            return;
        }
        Row row;
        row.text("bench", "papers")
                .text("figure", cell.figure)
                .text("method", cell.method.name)
                .integer("rows", cell.rows)
                .integer("cols", cell.cols)
                .integer("k", cell.k)
                .integer("sorted", cell.sorted);
        for (const auto& [name, value] : cell.method.fields) {
            row.integer(name.c_str(), value);
        }
        const double bytes = double(cell.rows) * double(cell.cols) * 4;
        report_.add(row.number("ms", ms).number(
                "frac_read", bytes / (bandwidth_ * 1e6) / ms));
    }

    SelectProblem problemOf(const PaperCell& cell) {
        const size_t places = size_t(cell.rows) * cell.k;
        if (outKeys_.size() < places) {
            outKeys_ = DeviceArray<float>();
            outIds_ = DeviceArray<int64_t>();
            outKeys_ = DeviceArray<float>(places);
            outIds_ = DeviceArray<int64_t>(places);
        }
        SelectProblem p;
        p.rows = cell.rows;
        p.cols = cell.cols;
        p.k = cell.k;
        p.sorted = cell.sorted;
        p.keys = keys_.data();
        p.outKeys = outKeys_.data();
        p.outIds = outIds_.data();
        p.device.multiprocessors = multiprocessors_;
        return p;
    }

    /// Milliseconds; 0 for a cell that is left out.
    double measure(const PaperCell& cell) {
        const SelectProblem p = problemOf(cell);
        Measured time;
        try {
            const Workspace scratch = scratchOf(cell.method.workspaceBytes(p));
            TimingMode mode;
            mode.maxMs = maxMs_;
            time = timeCall([&](int) { cell.method.run(p, scratch); }, mode);
        } catch (const Error& error) {
            std::printf("REFUSED %s: %s\n", cell.key().c_str(), error.what());
            ++refused_;
            return 0;
        }
        if (time.repeats == 0) {
            std::printf(
                    "note: %s takes %.0f ms and is left out\n",
                    cell.key().c_str(),
                    time.ms);
            ++slow_;
            return 0;
        }
        std::printf(
                "%5.0fs %-12s %-60s %10.4f ms (%d)\n",
                budget_.seconds(),
                cell.figure.c_str(),
                cell.key().c_str(),
                time.ms,
                time.repeats);
        std::fflush(stdout);
        // In this order: the second overwrites the result.
        const std::vector<float> found = firstKeys(cell);
        if (found != expectedKeys(cell)) {
            std::printf("WRONG: %s\n", cell.key().c_str());
            ++wrong_;
        }
        return time.ms;
    }

    Workspace scratchOf(size_t bytes) {
        if (scratch_.size() < bytes) {
            scratch_ = DeviceArray<uint8_t>();
            scratch_ = DeviceArray<uint8_t>(bytes);
        }
        return {scratch_.data(), scratch_.size()};
    }

    /// Keys of the first rows as the last call left them, in order.
    std::vector<float> firstKeys(const PaperCell& cell) const {
        const int64_t rows = std::clamp<int64_t>(
                (1 << 16) / cell.k, 1, std::min<int64_t>(cell.rows, 8));
        std::vector<float> keys(rows * cell.k);
        BITS_CUDA_CHECK(cudaMemcpy(
                keys.data(),
                outKeys_.data(),
                keys.size() * sizeof(float),
                cudaMemcpyDeviceToHost));
        for (int64_t r = 0; r < rows && !cell.sorted; ++r) {
            std::sort(
                    keys.begin() + r * cell.k, keys.begin() + (r + 1) * cell.k);
        }
        return keys;
    }

    /// The same of the algorithm that the table chooses.
    const std::vector<float>& expectedKeys(const PaperCell& cell) {
        PaperCell expected = cell;
        expected.method = selectMethod("auto");
        expected.sorted = true;
        const auto [place, isNew] = expected_.try_emplace(expected.key());
        if (isNew) {
            const SelectProblem p = problemOf(expected);
            expected.method.run(
                    p, scratchOf(expected.method.workspaceBytes(p)));
            place->second = firstKeys(expected);
        }
        return place->second;
    }

    const Options& options_;
    double maxMs_;
    Budget budget_;
    double bandwidth_;
    Report report_;
    int multiprocessors_ = multiprocessorCount();
    DeviceArray<float> keys_;
    DeviceArray<int32_t> ids_;
    DeviceArray<float> outKeys_;
    DeviceArray<int64_t> outIds_;
    DeviceArray<uint8_t> scratch_;
    std::map<std::string, double> measured_;
    std::map<std::string, std::vector<float>> expected_;
    int wrong_ = 0;
    int refused_ = 0;
    int slow_ = 0;
};

int runMain(int argc, char** argv) {
    std::vector<std::string> figures;
    std::vector<int64_t> ks;
    double maxMs = 10000;
    const Options options = parseOptions(
            argc,
            argv,
            {{"--figures",
              "hanak_5.2,tang_6,..., or a beginning: tang (default: all)",
              [&](const std::string& v) { figures = splitList(v); }},
             {"--ks",
              "k, with commas (default: all of the figures)",
              [&](const std::string& v) { ks = parseNumbers(v); }},
             {"--max-ms",
              "leave out what takes longer (default: 10000)",
              [&](const std::string& v) { maxMs = std::stod(v); }}});

    PaperBench bench(options, maxMs);
    std::vector<PaperCell> cells = bench.cells();
    std::set<std::string> used;
    std::erase_if(cells, [&](const PaperCell& cell) {
        const auto begins = [&](const std::string& name) {
            const bool does = cell.figure.compare(0, name.size(), name) == 0;
            if (does) {
                used.insert(name);
            }
            return does;
        };
        const bool wanted = figures.empty() ||
                std::count_if(figures.begin(), figures.end(), begins) > 0;
        return !wanted ||
                (!ks.empty() &&
                 std::find(ks.begin(), ks.end(), cell.k) == ks.end());
    });
    for (const std::string& name : figures) {
        if (!used.count(name)) {
            std::fprintf(stderr, "there is no figure '%s'\n", name.c_str());
            return 2;
        }
    }
    if (cells.empty()) {
        std::fprintf(stderr, "no cells are left\n");
        return 2;
    }
    bench.run(cells);
    return bench.isRight() ? 0 : 1;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
