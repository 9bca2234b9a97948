/// Times GpuIndexBitsFlat::search with filters. benchs/README.md says how.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include <faiss/gpu/StandardGpuResources.h>

#include "benchs/FilterSelectors.h"
#include "benchs/common/DeviceData.h"
#include "benchs/common/Labels.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "faiss_bits/flat/DeviceSelector.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"

namespace faiss_bits::bench {
namespace {

struct Shapes {
    int64_t n = 1 << 20;
    int64_t d = 128;
    std::vector<int64_t> qs = {1, 1024, 10240};
    std::vector<int64_t> ks = {10, 100};
    std::vector<double> shares = {0.01, 0.1, 0.5, 0.99};
    std::vector<std::string> selectors = {
            "range",
            "array",
            "batch",
            "bitmap",
            "not",
#if FAISS_BITS_FAISS_HAS_LOGICAL_SELECTORS
            "and",
            "or",
            "xor",
#endif
    };
    bool isL2 = true;
};

class FiltersBench {
   public:
    FiltersBench(const Options& options, const Shapes& shapes)
            : options_(options),
              shapes_(shapes),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())),
              vectors_(shapes.n * shapes.d) {
        const auto fill = [&](float* to, int64_t rows, int seed) {
            fillKeys(
                    to,
                    DataType::Float32,
                    rows,
                    shapes_.d,
                    Order::Random,
                    seed);
        };
        fill(vectors_.data(), shapes.n, 1);
        const int64_t most =
                *std::max_element(shapes.qs.begin(), shapes.qs.end());
        queries_ = DeviceArray<float>(most * shapes.d);
        fill(queries_.data(), most, 2);
        index_ = newIndex();
        index_->add(shapes.n, vectors_.data());
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
    }

    void run() {
        runSelector("none", 1, nullptr);
        for (double share : shapes_.shares) {
            for (bool together : {true, false}) {
                const auto members = makeMembers(shapes_.n, share, together);
                reference_.reset();
                for (const std::string& name : shapes_.selectors) {
                    if ((name == "range") == together) {
                        runSelector(name, share, &members);
                    }
                }
            }
        }
        std::printf(
                "%zu rows in %s, %.0f s, %d wrong\n",
                report_.size(),
                options_.out.c_str(),
                budget_.seconds(),
                wrong_);
    }

    bool isRight() const {
        return wrong_ == 0;
    }

   private:
    std::unique_ptr<gpu::GpuIndexBitsFlat> newIndex() {
        return std::make_unique<gpu::GpuIndexBitsFlat>(
                &resources_,
                int(shapes_.d),
                shapes_.isL2 ? faiss::METRIC_L2 : faiss::METRIC_INNER_PRODUCT);
    }

    void runSelector(
            const std::string& name,
            double share,
            const std::vector<bool>* members) {
        if (budget_.isSpent()) {
            std::printf("--max-seconds is spent: %s left out\n", name.c_str());
            return;
        }
        std::unique_ptr<NamedSelector> raw;
        std::unique_ptr<gpu::DeviceSelector> prepared;
        double prepareMs = 0;
        if (members) {
            raw = std::make_unique<NamedSelector>(name, *members);
            const auto prepare = [&](int) {
                prepared = std::make_unique<gpu::DeviceSelector>(
                        raw->get(), shapes_.n);
            };
            TimingMode mode;
            mode.wallClock = true;
            mode.before = [&] { prepared.reset(); };
            prepareMs = timeCall(prepare, mode).ms;
        }
        for (int64_t q : shapes_.qs) {
            for (int64_t k : shapes_.ks) {
                distances_ = DeviceArray<float>(q * k);
                labels_ = DeviceArray<idx_t>(q * k);
                const double ms = measure(q, k, prepared.get());
                if (members) {
                    check(name, share, *members, q, k);
                }
                Row row;
                row.text("bench", "filters")
                        .text("method", "faiss_bits")
                        .text("selector", name)
                        .number("allowed", share)
                        .integer("n", shapes_.n)
                        .integer("d", shapes_.d)
                        .integer("q", q)
                        .integer("k", k)
                        .text("metric", shapes_.isL2 ? "L2" : "IP")
                        .number("ms", ms);
                double rawMs = 0;
                if (members) {
                    rawMs = measure(q, k, raw->get());
                    row.number("prepare_ms", prepareMs).number("raw_ms", rawMs);
                }
                report_.add(row);
                std::printf(
                        "%5.0fs %-7s %4.0f%% q=%-5lld k=%-4lld %10.4f ms, "
                        "prepared in %.4f ms; raw %.4f ms\n",
                        budget_.seconds(),
                        name.c_str(),
                        100 * share,
                        (long long)q,
                        (long long)k,
                        ms,
                        prepareMs,
                        rawMs);
                std::fflush(stdout);
            }
        }
    }

    double measure(int64_t q, int64_t k, faiss::IDSelector* selector) {
        faiss::SearchParameters params;
        params.sel = selector;
        TimingMode mode;
        mode.wallClock = true;
        mode.before = [&] { flush_.enqueue(); };
        return timeCall(
                       [&](int) {
                           index_->search(
                                   q,
                                   queries_.data(),
                                   k,
                                   distances_.data(),
                                   labels_.data(),
                                   selector ? &params : nullptr);
                       },
                       mode)
                .ms;
    }

    /// The first labels against those of an index of the members alone.
    void check(
            const std::string& name,
            double share,
            const std::vector<bool>& members,
            int64_t q,
            int64_t k) {
        const auto got = firstLabels(q, k);
        if (!reference_) {
            makeReference(members);
        }
        reference_->search(
                q, queries_.data(), k, distances_.data(), labels_.data());
        auto want = firstLabels(q, k);
        for (idx_t& label : want) {
            label = label < 0 ? -1 : memberIds_[label];
        }
        if (got != want) {
            std::printf(
                    "WRONG: %s, %g of the ids, q=%lld k=%lld\n",
                    name.c_str(),
                    share,
                    (long long)q,
                    (long long)k);
            ++wrong_;
        }
    }

    void makeReference(const std::vector<bool>& members) {
        std::vector<float> all(shapes_.n * shapes_.d);
        BITS_CUDA_CHECK(cudaMemcpy(
                all.data(),
                vectors_.data(),
                all.size() * sizeof(float),
                cudaMemcpyDeviceToHost));
        std::vector<float> some;
        memberIds_.clear();
        for (int64_t i = 0; i < shapes_.n; ++i) {
            if (members[i]) {
                memberIds_.push_back(i);
                some.insert(
                        some.end(),
                        all.begin() + i * shapes_.d,
                        all.begin() + (i + 1) * shapes_.d);
            }
        }
        reference_ = newIndex();
        reference_->add(idx_t(memberIds_.size()), some.data());
    }

    std::vector<idx_t> firstLabels(int64_t q, int64_t k) const {
        return downloadLabels(labels_, std::min<int64_t>(q, 64) * k);
    }

    const Options& options_;
    const Shapes& shapes_;
    Budget budget_;
    Report report_;
    CacheFlush flush_;
    faiss::gpu::StandardGpuResources resources_;
    DeviceArray<float> vectors_;
    DeviceArray<float> queries_;
    std::unique_ptr<gpu::GpuIndexBitsFlat> index_;
    std::unique_ptr<gpu::GpuIndexBitsFlat> reference_; // of the members alone
    std::vector<idx_t> memberIds_;
    DeviceArray<float> distances_;
    DeviceArray<idx_t> labels_;
    int wrong_ = 0;
};

int runMain(int argc, char** argv) {
    Shapes shapes;
    const auto numbers = [](std::vector<int64_t>& list) {
        return [&list](const std::string& v) { list = parseNumbers(v); };
    };
    const auto number = [](int64_t& value) {
        return [&value](const std::string& v) {
            value = parseNumbers(v).front();
        };
    };
    const Options options = parseOptions(
            argc,
            argv,
            {{"--n", "vectors (default: published)", number(shapes.n)},
             {"--d", "dimensions", number(shapes.d)},
             {"--qs", "queries a call", numbers(shapes.qs)},
             {"--ks", "neighbours", numbers(shapes.ks)},
             {"--metric",
              "L2 or IP",
              [&](const std::string& v) { shapes.isL2 = v != "IP"; }},
             {"--selectors",
              "of range,array,batch,bitmap,not,and,or,xor",
              [&](const std::string& v) { shapes.selectors = splitList(v); }},
             {"--shares",
              "of the ids that are allowed, such as 0.01,0.5",
              [&](const std::string& v) { shapes.shares = parseReals(v); }}});
    FiltersBench bench(options, shapes);
    bench.run();
    return bench.isRight() ? 0 : 1;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
