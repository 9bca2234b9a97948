/// Times kernels/select and its rivals on random cells, and checks every
/// answer. benchs/README.md says how and why.

#include <algorithm>
#include <cstdio>
#include <random>

#include "benchs/SelectCheck.h"
#include "benchs/SweepCells.h"
#include "benchs/SweepKeys.h"
#include "benchs/SweepSummary.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "benchs/rivals/SelectMethod.h"

namespace faiss_bits::bench {
namespace {

struct SweepOptions {
    Options common;
    uint64_t seed = 0;
    int cells = 640;
    std::vector<int64_t> only; ///< numbers of cells; empty: all
    std::string sift;
    double totalMs = 10; ///< repeats of one row
    SelectAlgorithm algorithm = SelectAlgorithm::Auto;

    bool wants(size_t cell) const {
        return only.empty() ||
                std::count(only.begin(), only.end(), int64_t(cell)) > 0;
    }
};

/// Seconds between two replacements of the file.
constexpr double kSaveSeconds = 5;
/// FAISS gives a row to one block, or warp: seconds a call for longer ones.
constexpr int64_t kMostFaissCols = int64_t(1) << 22;

/// RAFT's own choice stands for RAFT, unless others are named.
SelectMethods sweepRivals(const Options& options) {
    SelectMethods rivals = makeRivals(options);
    std::erase_if(rivals, [&](const auto& rival) {
        return options.rivals == "all" &&
                (rival->name() == "raft_radix" ||
                 rival->name() == "raft_warpsort");
    });
    return rivals;
}

class SelectSweep {
   public:
    SelectSweep(
            const SweepOptions& options,
            const std::vector<SweepCell>& cells)
            : options_(options),
              budget_(options.common.maxSeconds),
              cells_(cells),
              ours_(makeOurSelect(options.algorithm)),
              rivals_(sweepRivals(options.common)),
              bandwidth_(measureReadBandwidth()),
              report_(options.common.out, meta(), kSaveSeconds),
              keys_(cells, options.sift),
              check_(mostOf([](const SweepCell& c) { return c.rows; }),
                     mostOf([](const SweepCell& c) {
                         return c.rows * c.cols;
                     })) {
        outKeys_ = DeviceArray<uint8_t>(mostOf([](const SweepCell& c) {
            return c.rows * c.k * int64_t(sizeOf(c.type));
        }));
        outIds_ = DeviceArray<int64_t>(
                mostOf([](const SweepCell& c) { return c.rows * c.k; }));
    }

    void run() {
        for (size_t i = 0; i < cells_.size(); ++i) {
            if (!options_.wants(i)) {
                continue;
            }
            if (budget_.isSpent()) {
                ++leftOut_;
                continue;
            }
            runCell(i);
        }
        report_.save();
        printSummary(results_, cells_);
        std::printf(
                "%zu cells, %zu rows in %s, %.0f s, %d left out, %d wrong, %d "
                "failed\n",
                results_.size(),
                report_.size(),
                options_.common.out.c_str(),
                budget_.seconds(),
                leftOut_,
                wrong_,
                failed_);
    }

    bool isRight() const {
        return wrong_ == 0 && failed_ == 0 && !results_.empty();
    }

   private:
    template <class Field>
    int64_t mostOf(Field field) const {
        int64_t most = 1;
        for (const SweepCell& cell : cells_) {
            most = std::max(most, field(cell));
        }
        return most;
    }

    Meta meta() const {
        Meta meta = collectMeta(options_.common, bandwidth_);
        meta.seed = options_.seed;
        for (const auto& rival : rivals_) {
            const auto [library, version] = rival->version();
            if (library != "faiss") {
                meta.versions[library] = version;
            }
        }
        return meta;
    }

    void runCell(size_t i) {
        const SweepCell& cell = cells_[i];
        std::printf(
                "%5.0fs %zu %s:",
                budget_.seconds(),
                i,
                cell.describe().c_str());
        std::fflush(stdout); // should the cell end the program
        const std::string why = keys_.refusal(cell);
        if (!why.empty()) {
            std::printf(" left out: %s\n", why.c_str());
            ++leftOut_;
            return;
        }
        try {
            runOurs(i, cell);
        } catch (const std::exception& error) {
            ++failed_;
            std::printf(" FAILED: %s\n", error.what());
            stillWorks();
            ours_->release();
            return;
        }
        ours_->release();
        keys_.turnForRivals();
        for (const auto& rival : rivals_) {
            runRival(cell, *rival);
        }
        const SweepResult& result = results_.back();
        if (!result.best.empty()) {
            std::printf(
                    " | %.2f of %s",
                    result.bestMs / result.ours,
                    result.best.c_str());
        }
        std::printf("\n");
        std::fflush(stdout);
    }

    void runOurs(size_t i, const SweepCell& cell) {
        const SampleLayout sample = sampleOf(cell);
        SelectShape shape = shapeOf(cell);
        shape.stride = cell.stride;
        shape.largest = cell.largest;
        ours_->prepare(shape);
        const auto call = [&](int slice) {
            ours_->run(keys_.ours(slice), outKeys_.data(), outIds_.data());
        };
        SweepResult result;
        result.cell = i;
        if (cell.order != Order::Random) {
            keys_.makeRandom(cell);
            result.random = measure(call).ms;
        }
        keys_.make(cell, sample);
        forgetResults(cell);
        result.ours = measure(call).ms;
        if (cell.order == Order::Random) {
            result.random = result.ours;
        }
        const int64_t wrong = wrongRows(cell, *ours_, true);
        wrong_ += wrong > 0;
        Row row = rowOf(cell, *ours_, result.ours, wrong);
        row.number("random_ms", result.random)
                .integer("cell", int64_t(i))
                .integer("seed", int64_t(cell.seed));
        if (sample.places > 0) {
            row.integer("sample_threads", sample.threads)
                    .integer("sample_places", sample.places)
                    .integer("sample_parts", sample.parts);
        }
        report_.add(row);
        results_.push_back(result);
        std::printf(
                " %s %.4g ms (random %.4g)",
                ours_->algorithm().c_str(),
                result.ours,
                result.random);
        noteWrong(wrong);
    }

    void runRival(const SweepCell& cell, SelectMethod& rival) {
        const SelectShape shape = shapeOf(cell);
        const bool isFaiss = rival.version().first == "faiss";
        if (!rival.refusal(shape).empty() ||
            (isFaiss && cell.cols > kMostFaissCols)) {
            return;
        }
        try {
            rival.prepare(shape);
            forgetResults(cell);
            const double ms = measure([&](int slice) {
                                  rival.run(
                                          keys_.rivals(slice),
                                          outKeys_.data(),
                                          outIds_.data());
                              }).ms;
            rival.collect(outKeys_.data(), outIds_.data());
            const int64_t wrong = wrongRows(cell, rival, false);
            report_.add(rowOf(cell, rival, ms, wrong));
            std::printf(", %s %.4g", rival.name().c_str(), ms);
            noteWrong(wrong);
            SweepResult& result = results_.back();
            if (wrong == 0 && (result.best.empty() || ms < result.bestMs)) {
                result.best = rival.name();
                result.bestMs = ms;
            }
        } catch (const std::exception& error) {
            std::printf(", %s failed: %s", rival.name().c_str(), error.what());
            stillWorks();
        }
        rival.release();
    }

    static SelectShape shapeOf(const SweepCell& cell) {
        return {cell.rows, cell.cols, cell.k, cell.type};
    }

    Measured measure(const std::function<void(int)>& call) const {
        waitForFreedMemory();
        TimingMode mode;
        mode.totalMs = options_.totalMs;
        mode.leastRepeats = 3;
        mode.mostRepeats = 15;
        mode.fewMs = 20;
        mode.onceMs = 20;
        mode.firstMs = 300; // the first call may have to load code
        return timeCall(call, mode);
    }

    /// So that no answer of another method passes.
    void forgetResults(const SweepCell& cell) const {
        const size_t places = size_t(cell.rows) * cell.k;
        BITS_CUDA_CHECK(
                cudaMemset(outKeys_.data(), 0xFF, places * sizeOf(cell.type)));
        BITS_CUDA_CHECK(
                cudaMemset(outIds_.data(), 0xFF, places * sizeof(int64_t)));
    }

    /// Of the last call, which was on slice 0.
    int64_t wrongRows(
            const SweepCell& cell,
            const SelectMethod& method,
            bool isOurs) {
        SelectAnswer answer;
        answer.keys = isOurs ? keys_.ours(0) : keys_.rivals(0);
        answer.rows = cell.rows;
        answer.cols = cell.cols;
        answer.stride = isOurs ? cell.stride : cell.cols;
        answer.k = cell.k;
        answer.type = cell.type;
        answer.largest = isOurs && cell.largest;
        answer.outKeys = outKeys_.data();
        answer.outIds = outIds_.data();
        answer.idType = method.idType();
        answer.lowerColumnFirst = isOurs;
        return check_.wrongRows(answer);
    }

    Row rowOf(
            const SweepCell& cell,
            const SelectMethod& method,
            double ms,
            int64_t wrong) const {
        const double size = double(sizeOf(cell.type));
        const double bytes = double(cell.rows) *
                (double(cell.cols) * size + cell.k * (size + 8));
        Row row;
        row.text("bench", "select_sweep").text("method", method.name());
        if (!method.algorithm().empty()) {
            row.text("algorithm", method.algorithm());
        }
        row.integer("rows", cell.rows)
                .integer("cols", cell.cols)
                .integer("stride", cell.stride)
                .integer("k", cell.k)
                .integer("largest", cell.largest)
                .text("dtype", nameOf(cell.type))
                .text("order", nameOf(cell.order))
                .number("ms", ms)
                .number("frac_io", bytes / (bandwidth_ * 1e6) / ms);
        if (wrong > 0) {
            row.integer("wrong", wrong);
        }
        return row;
    }

    static void noteWrong(int64_t rows) {
        if (rows > 0) {
            std::printf(" WRONG: %lld rows", (long long)rows);
        }
    }

    /// Throws if an error has broken the device for good.
    void stillWorks() {
        (void)cudaGetLastError();
        const cudaError_t status = cudaDeviceSynchronize();
        if (status != cudaSuccess) {
            report_.save();
            BITS_CUDA_CHECK(status);
        }
    }

    const SweepOptions& options_;
    Budget budget_;
    const std::vector<SweepCell>& cells_;
    std::unique_ptr<SelectMethod> ours_;
    SelectMethods rivals_;
    double bandwidth_;
    Report report_;
    SweepKeys keys_;
    SelectCheck check_;
    DeviceArray<uint8_t> outKeys_;
    DeviceArray<int64_t> outIds_;
    std::vector<SweepResult> results_;
    int leftOut_ = 0;
    int wrong_ = 0;
    int failed_ = 0;
};

/// Exact as a double, for whatever reads the JSON; never 0.
uint64_t freshSeed() {
    std::random_device random;
    return ((uint64_t(random()) << 20) ^ random()) % (uint64_t(1) << 52) + 1;
}

int runMain(int argc, char** argv) {
    SweepOptions options;
    options.seed = freshSeed();
    const std::vector<ExtraOption> extra = {
            {"--seed",
             "of the cells (default: a new one)",
             [&](const std::string& v) { options.seed = std::stoull(v); }},
            {"--cells",
             "how many (default: 640)",
             [&](const std::string& v) { options.cells = std::stoi(v); }},
            {"--only",
             "numbers of cells, with commas",
             [&](const std::string& v) { options.only = parseNumbers(v); }},
            {"--algorithm",
             "of kernels/select, for every cell; a cell that it cannot take "
             "fails (default: auto)",
             [&](const std::string& v) {
                 options.algorithm = selectAlgorithmOf(v);
             }},
            {"--sift",
             "vectors (.fvecs or .bvecs) for the orders sift and "
             "sift_clustered",
             [&](const std::string& v) { options.sift = v; }},
            {"--total-ms",
             "time for the repeats of one row (default: 10)",
             [&](const std::string& v) { options.totalMs = parseReal(v); }}};
    options.common = parseOptions(argc, argv, extra);
    const std::vector<SweepCell> cells =
            drawSweepCells(options.seed, options.cells);
    std::printf(
            "seed %llu, %zu cells\n",
            (unsigned long long)options.seed,
            cells.size());
    SelectSweep sweep(options, cells);
    sweep.run();
    return sweep.isRight() ? 0 : 1;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
