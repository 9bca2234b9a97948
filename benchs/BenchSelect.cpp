/// Times kernels/select against the k-selections of other libraries.
/// benchs/README.md says how and why.

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "benchs/SelectCells.h"
#include "benchs/SelectKeys.h"
#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "benchs/rivals/SelectMethod.h"
#include "kernels/select/Select.h"

namespace faiss_bits::bench {
namespace {

struct SelectOptions {
    Options common;
    SelectCellOptions cells;
    std::vector<SelectAlgorithm> algorithms = {SelectAlgorithm::Auto};
    std::string sift;
    double slowMs = -1; ///< negative: 100 ms, of rivals on ordered keys
    double totalMs = TimingMode().totalMs;
    int backToBack = 0; ///< calls that are enqueued at once; 0: none
};

/// One method in the race.
struct Runner {
    std::unique_ptr<SelectMethod> method;
    std::string label; ///< for messages; no two are the same
    bool isRival = true;
};

class SelectBench {
   public:
    explicit SelectBench(const SelectOptions& options)
            : options_(options), budget_(options.common.maxSeconds) {
        for (SelectAlgorithm algorithm : options.algorithms) {
            runners_.push_back(
                    {makeOurSelect(algorithm),
                     std::string("faiss_bits ") + nameOf(algorithm),
                     false});
        }
        for (auto& rival : makeRivals(options.common)) {
            const std::string name = rival->name();
            runners_.push_back({std::move(rival), name, true});
        }
        if (!options.sift.empty()) {
            keys_.readVectors(options.sift);
        }
        bandwidth_ = measureReadBandwidth();
        std::printf("read bandwidth %.0f GB/s\n", bandwidth_);
        report_ = std::make_unique<Report>(options.common.out, meta());
    }

    void run(const std::vector<SelectCell>& cells) {
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
                "%zu rows in %s, %.0f s, %d wrong, %d failed\n",
                report_->size(),
                options_.common.out.c_str(),
                budget_.seconds(),
                wrong_,
                failed_);
    }

    bool isRight() const {
        return wrong_ == 0 && failed_ == 0;
    }

   private:
    /// A method on one kind of keys: what its time depends on besides k.
    using Race = std::tuple<std::string, int64_t, int64_t, DataType, Order>;

    Meta meta() const {
        Meta meta = collectMeta(options_.common, bandwidth_);
        for (const Runner& runner : runners_) {
            const auto [library, version] = runner.method->version();
            if (!library.empty() && library != "faiss") {
                meta.versions[library] = version;
            }
        }
        return meta;
    }

    void runCell(const SelectCell& cell) {
        const std::string why = keys_.refusal(cell);
        if (!why.empty()) {
            note(cell, "all", why);
            return;
        }
        keys_.prepare(cell);
        if (!keys_.isBeyondCache()) {
            std::printf("note: the keys of the next cell fit the L2\n");
        }
        const size_t places = size_t(cell.rows) * cell.k;
        outKeys_ = DeviceArray<uint8_t>();
        outIds_ = DeviceArray<int64_t>();
        outKeys_ = DeviceArray<uint8_t>(places * sizeOf(cell.type));
        outIds_ = DeviceArray<int64_t>(places);
        answer_.clear();
        if (std::ranges::any_of(runners_, &Runner::isRival)) {
            // Their scratch too was freed before.
            noteFreed(size_t(1) << 30);
        }
        for (const Runner& runner : runners_) {
            // A method that fails leaves no row, and the run goes on.
            try {
                measure(cell, runner);
            } catch (const std::exception& error) {
                ++failed_;
                std::printf("FAILED: ");
                note(cell, runner.label, error.what());
                (void)cudaGetLastError();
            }
            runner.method->release();
        }
    }

    void measure(const SelectCell& cell, const Runner& runner) {
        SelectMethod& method = *runner.method;
        const SelectShape shape{cell.rows, cell.cols, cell.k, cell.type};
        const std::string why = method.refusal(shape);
        if (!why.empty()) {
            note(cell, runner.label, why);
            return;
        }
        const Race race{
                runner.label, cell.rows, cell.cols, cell.type, cell.order};
        const auto known = fastest_.find(race);
        if (method.ignoresK() && known != fastest_.end()) {
            addRow(cell, method, known->second);
            return;
        }
        TimingMode mode;
        mode.maxMs = limitOf(cell, runner);
        mode.totalMs = options_.totalMs;
        if (isTooSlow(race, mode.maxMs)) {
            note(cell, runner.label, "too slow for another k or order");
            return;
        }
        method.prepare(shape);
        waitForFreedMemory();
        const auto call = [&](int i) {
            method.run(keys_.at(i), outKeys_.data(), outIds_.data());
        };
        const Measured measured = timeCall(call, mode);
        if (measured.repeats == 0) {
            tooSlow_.insert(race);
            const int ms = int(measured.ms);
            note(cell, runner.label, std::to_string(ms) + " ms a call");
            return;
        }
        if (known == fastest_.end() || measured.ms < known->second.ms) {
            fastest_[race] = measured;
        }
        const double together = options_.backToBack > 0 && !runner.isRival
                ? backToBack(call)
                : 0;
        addRow(cell, method, measured, together);
        method.collect(outKeys_.data(), outIds_.data());
        compare(cell);
    }

    /// Of one of several calls, of which none waits for the host: where the
    /// host enqueues one in less time than it takes, that of the GPU alone.
    double backToBack(const std::function<void(int)>& call) const {
        TimingMode mode;
        mode.totalMs = options_.totalMs;
        const int calls = options_.backToBack;
        const auto all = [&](int) {
            // The last one on slice 0, as ever.
            for (int i = calls - 1; i >= 0; --i) {
                call(i);
            }
        };
        return timeCall(all, mode).ms / calls;
    }

    double limitOf(const SelectCell& cell, const Runner& runner) const {
        constexpr double kNone = 1e300;
        constexpr double kSlowCase = 100;
        if (options_.slowMs >= 0) {
            return options_.slowMs;
        }
        return runner.isRival && cell.order != Order::Random ? kSlowCase
                                                             : kNone;
    }

    /// Known without a call: a method was too slow on these keys for another
    /// k, or is on random keys, which are the easiest.
    bool isTooSlow(const Race& race, double limit) const {
        Race easy = race;
        std::get<Order>(easy) = Order::Random;
        const auto known = fastest_.find(easy);
        return tooSlow_.count(race) ||
                (known != fastest_.end() && known->second.ms > limit);
    }

    void addRow(
            const SelectCell& cell,
            const SelectMethod& method,
            const Measured& measured,
            double together = 0) {
        const double bytes =
                double(cell.rows) * double(cell.cols) * sizeOf(cell.type);
        const double fraction = bytes / (bandwidth_ * 1e6) / measured.ms;
        const std::string algorithm = method.algorithm();
        Row row;
        row.text("bench", "select").text("method", method.name());
        if (!algorithm.empty()) {
            row.text("algorithm", algorithm);
        }
        if (method.isForced()) {
            row.integer("forced", 1);
        }
        row.integer("rows", cell.rows)
                .integer("cols", cell.cols)
                .integer("k", cell.k)
                .text("dtype", nameOf(cell.type))
                .text("order", nameOf(cell.order))
                .number("ms", measured.ms)
                .number("frac_read", fraction);
        if (together > 0) {
            row.number("back_to_back_ms", together);
        }
        report_->add(row);
        std::printf(
                "%5.0fs %-13s %s %10.4f ms %6.3f of read (%d) %s\n",
                budget_.seconds(),
                method.name().c_str(),
                cell.describe().c_str(),
                measured.ms,
                fraction,
                measured.repeats,
                algorithm.c_str());
        std::fflush(stdout);
    }

    /// Keys of the first rows, as the last call (on slice 0) left them, against
    /// those of the first method.
    void compare(const SelectCell& cell) {
        std::vector<uint8_t> keys(
                std::min<int64_t>(cell.rows, 8) * cell.k * sizeOf(cell.type));
        BITS_CUDA_CHECK(cudaMemcpy(
                keys.data(),
                outKeys_.data(),
                keys.size(),
                cudaMemcpyDeviceToHost));
        if (answer_.empty()) {
            answer_ = keys;
        } else if (keys != answer_) {
            std::printf("WRONG: other keys than the first method\n");
            ++wrong_;
        }
    }

    void note(
            const SelectCell& cell,
            const std::string& what,
            const std::string& why) const {
        std::printf(
                "note: %s: %s left out: %s\n",
                cell.describe().c_str(),
                what.c_str(),
                why.c_str());
        std::fflush(stdout);
    }

    const SelectOptions& options_;
    Budget budget_;
    std::vector<Runner> runners_;
    double bandwidth_ = 0;
    std::unique_ptr<Report> report_;
    SelectKeys keys_;
    DeviceArray<uint8_t> outKeys_;
    DeviceArray<int64_t> outIds_;
    std::vector<uint8_t> answer_;
    std::map<Race, Measured> fastest_; ///< over k
    std::set<Race> tooSlow_;
    int wrong_ = 0;
    int failed_ = 0;
};

std::vector<SelectAlgorithm> parseAlgorithms(const std::string& list) {
    if (list == "all") {
        return selectAlgorithms();
    }
    std::vector<SelectAlgorithm> algorithms;
    for (const std::string& name : splitList(list)) {
        algorithms.push_back(selectAlgorithmOf(name));
    }
    return algorithms;
}

int runMain(int argc, char** argv) {
    SelectOptions options;
    std::vector<ExtraOption> extra = options.cells.commandLine();
    extra.push_back(
            {"--algorithm",
             "of ours: auto (default), names with commas, or all",
             [&](const std::string& v) {
                 options.algorithms = parseAlgorithms(v);
             }});
    extra.push_back(
            {"--sift",
             "vectors (.fvecs or .bvecs) for the order sift",
             [&](const std::string& v) { options.sift = v; }});
    extra.push_back(
            {"--slow-ms",
             "leave out what takes longer (default: 100, for rivals on keys "
             "in an order)",
             [&](const std::string& v) { options.slowMs = parseReal(v); }});
    extra.push_back(
            {"--total-ms",
             "time for the repeats of one row (default: 60)",
             [&](const std::string& v) { options.totalMs = parseReal(v); }});
    extra.push_back(
            {"--back-to-back",
             "also the time of one of so many calls of ours that are enqueued "
             "at once (default: 0, none)",
             [&](const std::string& v) {
                 options.backToBack = std::stoi(v);
                 if (options.backToBack < 0) {
                     throw std::invalid_argument(
                             "--back-to-back " + v + " is negative");
                 }
             }});
    options.common = parseOptions(argc, argv, extra);

    const std::vector<SelectCell> cells = selectCells(options.cells);
    if (cells.empty()) {
        std::fprintf(stderr, "no cells are left\n");
        return 2;
    }
    SelectBench bench(options);
    bench.run(cells);
    return bench.isRight() ? 0 : 1;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
