/// Random cells of hard data: what certified searches cost where the
/// approximations cannot tell neighbours apart. benchs/README.md says how.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <cuda_profiler_api.h>
#include <faiss/gpu/StandardGpuResources.h>

#include "benchs/FlatData.h"
#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::bench {
namespace {

/// Times the plain mode; cells above it are printed.
constexpr double kMost = 5;

struct MetricKind {
    const char* name;
    faiss::MetricType type;
    double p = 0;        // of Lp, else 0
    bool isSlow = false; // divisions, powers or logarithms in float64
};

const std::vector<MetricKind> kOfProducts = {
        {"L2", faiss::METRIC_L2},
        {"IP", faiss::METRIC_INNER_PRODUCT}};

const std::vector<MetricKind> kOthers = {
        {"L1", faiss::METRIC_L1},
        {"Linf", faiss::METRIC_Linf},
        {"Lp", faiss::METRIC_Lp, 3},
        {"Lp", faiss::METRIC_Lp, 2.5, true},
        {"Canberra", faiss::METRIC_Canberra, 0, true},
        {"BrayCurtis", faiss::METRIC_BrayCurtis},
        {"JensenShannon", faiss::METRIC_JensenShannon, 0, true}};

struct Cell {
    int64_t n = 0;
    int d = 0;
    int64_t q = 0;
    int k = 0;
    MetricKind metric = kOfProducts.front();
    bool isFloat16 = false;
    FlatData data = FlatData::Equal;
};

/// "n,d,q,k,metric,p,type,data", as a row of the results has them (p: 0 but for
/// Lp). Exits with 2 on anything else.
Cell parseCell(const std::string& text) {
    const std::vector<std::string> parts = splitList(text);
    Cell cell;
    bool isKnown = false;
    if (parts.size() == 8) {
        const double p = parseReal(parts[5]);
        for (const auto& kinds : {kOfProducts, kOthers}) {
            for (const MetricKind& kind : kinds) {
                if (parts[4] == kind.name && (p == kind.p || kind.p != 0)) {
                    cell.metric = kind;
                    cell.metric.p = p;
                    isKnown = true;
                }
            }
        }
    }
    if (!isKnown || (parts[6] != "float32" && parts[6] != "float16")) {
        std::fprintf(
                stderr,
                "--cell is '%s', not n,d,q,k,metric,p,type,data\n",
                text.c_str());
        std::exit(2);
    }
    cell.n = parseNumbers(parts[0]).at(0);
    cell.d = int(parseNumbers(parts[1]).at(0));
    cell.q = parseNumbers(parts[2]).at(0);
    cell.k = int(parseNumbers(parts[3]).at(0));
    cell.isFloat16 = parts[6] == "float16";
    cell.data = flatDataOf(parts[7]);
    return cell;
}

class CellMaker {
   public:
    CellMaker(uint64_t seed, bool withOthers)
            : random_(seed), withOthers_(withOthers) {}

    Cell next() {
        constexpr double kMostPairs = 1e9;  // q n
        constexpr double kMostWork = 5e10;  // q n d
        constexpr double kMostPlaces = 2e7; // q k
        while (true) {
            Cell cell;
            cell.n = between(1 << 12, 1 << 21);
            cell.d = int(between(3, 1024));
            // Few queries are half of the cells.
            cell.q = chance(0.5) ? between(1, 20) : between(17, 12000);
            const int64_t mostK = chance(0.1) ? 20000 : 2048;
            cell.k = int(std::min(between(1, mostK), cell.n));
            const bool isOther = withOthers_ && chance(0.4);
            cell.metric = isOther ? oneOf(kOthers) : oneOf(kOfProducts);
            cell.isFloat16 = chance(isOther ? 0.1 : 0.25);
            cell.data = oneOf(std::vector<FlatData>{
                    FlatData::Clusters,
                    FlatData::Few,
                    FlatData::Equal,
                    FlatData::Infinite,
                    FlatData::Scales,
                    FlatData::Near,
                    FlatData::Bits});
            const double pairs = double(cell.q) * double(cell.n);
            const double slowness = cell.metric.isSlow ? 20 : 1;
            if (pairs <= kMostPairs && pairs * cell.d * slowness <= kMostWork &&
                double(cell.q) * cell.k <= kMostPlaces) {
                return cell;
            }
        }
    }

   private:
    bool chance(double share) {
        return std::bernoulli_distribution(share)(random_);
    }

    /// Of even logarithms.
    int64_t between(int64_t least, int64_t most) {
        std::uniform_real_distribution<double> exponent(
                std::log(double(least)), std::log(double(most)));
        return std::lround(std::exp(exponent(random_)));
    }

    template <class T>
    T oneOf(const std::vector<T>& list) {
        return list[std::uniform_int_distribution<size_t>(
                0, list.size() - 1)(random_)];
    }

    std::mt19937_64 random_;
    bool withOthers_;
};

class HardBench {
   public:
    /// isProfiled: each cell is searched once by each mode between the marks
    /// of the profiler, and not timed.
    HardBench(const Options& options, uint64_t seed, bool isProfiled)
            : isProfiled_(isProfiled),
              budget_(options.maxSeconds),
              report_(options.out, metaOf(options, seed), 1) {}

    /// next() makes the cells.
    template <class Next>
    void run(const Next& next, int count) {
        for (int i = 0; i < count && !budget_.isSpent(); ++i) {
            runCell(next(i));
        }
        report_.save();
        std::printf(
                "%d cells, %d took more than %g times the plain mode, the "
                "most %.2f times; %.0f s\n",
                numCells_,
                numBeyond_,
                kMost,
                greatest_,
                budget_.seconds());
    }

   private:
    static Meta metaOf(const Options& options, uint64_t seed) {
        Meta meta = collectMeta(options, measureReadBandwidth());
        meta.seed = seed;
        return meta;
    }

    void runCell(const Cell& cell) {
        const int seed = 2 * numCells_++;
        gpu::GpuIndexBitsFlatConfig config;
        config.useFloat16 = cell.isFloat16;
        gpu::GpuIndexBitsFlat index(
                &resources_, cell.d, cell.metric.type, config);
        index.metric_arg = float(cell.metric.p);
        {
            DeviceArray<float> vectors(cell.n * cell.d);
            fillFlatData(
                    vectors.data(), cell.data, false, cell.n, cell.d, seed);
            index.add(cell.n, vectors.data());
        }
        DeviceArray<float> queries(cell.q * cell.d);
        fillFlatData(queries.data(), cell.data, true, cell.q, cell.d, seed + 1);
        DeviceArray<float> distances(cell.q * cell.k);
        DeviceArray<idx_t> labels(cell.q * cell.k);
        const auto search = [&](SearchMode mode) {
            return [&, mode](int) {
                index.search_mode = mode;
                index.search(
                        cell.q,
                        queries.data(),
                        cell.k,
                        distances.data(),
                        labels.data());
            };
        };
        // What the first few searches of few queries make is kept.
        for (int i = 0; i < (cell.q <= 16 ? 5 : 1); ++i) {
            search(SearchMode::Certified)(0);
        }
        if (isProfiled_) {
            search(SearchMode::Plain)(0);
            BITS_CUDA_CHECK(cudaDeviceSynchronize());
            BITS_CUDA_CHECK(cudaProfilerStart());
            search(SearchMode::Certified)(0);
            search(SearchMode::Plain)(0);
            BITS_CUDA_CHECK(cudaDeviceSynchronize());
            BITS_CUDA_CHECK(cudaProfilerStop());
            return;
        }
        TimingMode mode;
        mode.wallClock = true;
        mode.before = [&] { flush_.enqueue(); };
        mode.totalMs = 15;
        mode.fewMs = 20;
        mode.onceMs = 60;
        index.reset_stats();
        const std::vector<Measured> times = timeInTurns(
                {search(SearchMode::Certified), search(SearchMode::Plain)},
                mode);
        const SearchStats stats = index.stats();
        const double all = double(stats.repeated + stats.certified);
        const double share = all > 0 ? double(stats.repeated) / all : 0;
        search(SearchMode::Certified)(0);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        report(cell,
               share,
               times[0].ms,
               times[1].ms,
               bitsOf(distances, labels, cell.q * cell.k));
    }

    /// A number that other results do not have, most likely: of two builds it
    /// says whether theirs are the same.
    static std::string bitsOf(
            const DeviceArray<float>& distances,
            const DeviceArray<idx_t>& labels,
            int64_t count) {
        std::vector<uint32_t> keys(count);
        std::vector<idx_t> ids(count);
        BITS_CUDA_CHECK(cudaMemcpy(
                keys.data(),
                distances.data(),
                count * sizeof(float),
                cudaMemcpyDeviceToHost));
        BITS_CUDA_CHECK(cudaMemcpy(
                ids.data(),
                labels.data(),
                count * sizeof(idx_t),
                cudaMemcpyDeviceToHost));
        uint64_t sum = 0;
        for (int64_t i = 0; i < count; ++i) {
            sum = (sum ^ keys[i]) * 0x9E3779B97F4A7C15u + uint64_t(ids[i]);
            sum ^= sum >> 29;
        }
        char text[17];
        std::snprintf(text, sizeof(text), "%016llx", (unsigned long long)sum);
        return text;
    }

    void report(
            const Cell& cell,
            double share,
            double ours,
            double plain,
            const std::string& bits) {
        const double ratio = ours / plain;
        greatest_ = std::max(greatest_, ratio);
        numBeyond_ += ratio > kMost;
        const char* type = cell.isFloat16 ? "float16" : "float32";
        for (const bool isPlain : {false, true}) {
            Row row;
            row.text("bench", "hard")
                    .text("method", isPlain ? "faiss_bits_plain" : "faiss_bits")
                    .integer("n", cell.n)
                    .integer("d", cell.d)
                    .integer("q", cell.q)
                    .integer("k", cell.k)
                    .text("metric", cell.metric.name);
            if (cell.metric.p != 0) {
                row.number("p", cell.metric.p);
            }
            row.text("dtype", type)
                    .text("data", nameOf(cell.data))
                    .number("ms", isPlain ? plain : ours);
            if (!isPlain) {
                row.number("repeated", share)
                        .number("times_plain", ratio)
                        .text("bits", bits);
            }
            report_.add(row);
        }
        if (ratio > kMost) {
            std::printf(
                    "%.2f times: n=%lld d=%d q=%lld k=%d %s %g %s %s, %.4f for "
                    "%.4f ms, %.2f repeated\n",
                    ratio,
                    (long long)cell.n,
                    cell.d,
                    (long long)cell.q,
                    cell.k,
                    cell.metric.name,
                    cell.metric.p,
                    type,
                    nameOf(cell.data).c_str(),
                    ours,
                    plain,
                    share);
            std::fflush(stdout);
        }
    }

    bool isProfiled_;
    Budget budget_;
    Report report_;
    CacheFlush flush_;
    faiss::gpu::StandardGpuResources resources_;
    int numCells_ = 0;
    int numBeyond_ = 0;
    double greatest_ = 0;
};

int runMain(int argc, char** argv) {
    uint64_t seed =
            (uint64_t(std::random_device()()) << 21 | std::random_device()()) %
            (uint64_t(1) << 53);
    int64_t cells = 200;
    std::string metrics = "all";
    std::vector<Cell> given;
    bool isProfiled = false;
    const Options options = parseOptions(
            argc,
            argv,
            {{"--seed",
              "of the cells (default: a fresh one)",
              [&](const std::string& v) { seed = parseNumbers(v).at(0); }},
             {"--cells",
              "how many (default: 200)",
              [&](const std::string& v) { cells = parseNumbers(v).at(0); }},
             {"--metrics",
              "all (default), or products: L2 and IP alone",
              [&](const std::string& v) { metrics = v; }},
             {"--cell",
              "n,d,q,k,metric,p,type,data in place of random ones; again for "
              "more",
              [&](const std::string& v) { given.push_back(parseCell(v)); }},
             {"--profile",
              "1: search once between the profiler's marks, time nothing",
              [&](const std::string& v) {
                  isProfiled = parseNumbers(v).at(0) != 0;
              }}});
    if (metrics != "all" && metrics != "products") {
        std::fprintf(
                stderr,
                "--metrics is '%s', not all or products\n",
                metrics.c_str());
        return 2;
    }
    CellMaker maker(seed, metrics == "all");
    HardBench bench(options, seed, isProfiled);
    if (given.empty()) {
        bench.run([&](int) { return maker.next(); }, int(cells));
    } else {
        bench.run([&](int i) { return given[i]; }, int(given.size()));
    }
    return 0;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
