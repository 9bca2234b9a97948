/// Times the searches of the exact k-NN graph by an index on several devices,
/// beside one device's and FAISS's. benchs/README.md says how.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "benchs/many/FaissMany.h"
#include "benchs/many/ManyPlaces.h"
#include "benchs/many/SearchTimes.h"

namespace faiss_bits::bench {
namespace {

struct Shapes : ManySettings {
    int64_t n = 1 << 20;
    int64_t d = 128;
    int64_t k = 10;
    int64_t block = 16384;
};

class ManyKnnGraphBench {
   public:
    ManyKnnGraphBench(const Options& options, const Shapes& shapes)
            : options_(options),
              shapes_(shapes),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())),
              places_(shapes),
              vectors_(randomVectors(shapes.n, shapes.d, 1)),
              hostVectors_(download(vectors_)) {}

    int run() {
        for (const std::string& kind : shapes_.kinds) {
            for (const int64_t parts : shapes_.parts) {
                runOurs(kind, int(parts));
            }
        }
        for (const std::string& kind : shapes_.kinds) {
            // One index takes longest: last.
            for (size_t i = shapes_.parts.size(); i-- > 0;) {
                runFaiss(kind, int(shapes_.parts[i]));
            }
        }
        return finishBench(report_, budget_, wrong_);
    }

   private:
    /// Of each vector k others and, most often, the vector itself.
    int64_t width() const {
        return shapes_.k + 1;
    }

    /// The vectors in blocks, one for each device at a time.
    void search(
            const faiss::Index& index,
            int parts,
            const float* vectors,
            float* distances,
            int64_t* labels) const {
        const int64_t block = shapes_.block * places_.devicesOf(parts);
        for (int64_t begin = 0; begin < shapes_.n; begin += block) {
            const int64_t count = std::min(block, shapes_.n - begin);
            index.search(
                    count,
                    vectors + begin * shapes_.d,
                    width(),
                    distances + begin * width(),
                    labels + begin * width());
        }
    }

    /// The median of three, or one of more than two seconds.
    template <class Call>
    static double timed(const Call& call) {
        TimingMode mode;
        mode.wallClock = true;
        mode.fewMs = 0; // three times
        mode.onceMs = 2000;
        mode.firstMs = 2000;
        return timeCall([&](int) { call(); }, mode).ms;
    }

    bool isSpent(const char* method) const {
        if (budget_.isSpent()) {
            std::printf("--max-seconds is spent: %s left out\n", method);
        }
        return budget_.isSpent();
    }

    void runOurs(const std::string& kind, int parts) {
        if (isSpent("faiss_bits")) {
            return;
        }
        const auto index = places_.ours(kind, parts, shapes_.d);
        index->add(shapes_.n, vectors_.data());
        {
            const Outputs out(shapes_.n, width());
            const double ms = timed([&] {
                search(*index,
                       parts,
                       vectors_.data(),
                       out.distances.data(),
                       out.labels.data());
            });
            check(kind, parts, out.download());
            add("faiss_bits", kind, parts, "device", ms);
        }
        Answers out;
        out.resize(shapes_.n * width());
        const double ms = timed([&] {
            search(*index,
                   parts,
                   hostVectors_.data(),
                   out.distances.data(),
                   out.labels.data());
        });
        check(kind, parts, std::move(out));
        add("faiss_bits", kind, parts, "host", ms);
    }

    void runFaiss(const std::string& kind, int parts) {
        if (!options_.wants("faiss") || isSpent("faiss")) {
            return;
        }
        const FaissMany faiss = faissOverFlat(
                kind == "shards",
                places_.list(parts),
                places_.resources(),
                int(shapes_.d),
                hostVectors_.data(),
                shapes_.n);
        Answers out;
        out.resize(shapes_.n * width());
        const double ms = timed([&] {
            search(parts > 1 ? *faiss.index : *faiss.owned.front(),
                   parts,
                   hostVectors_.data(),
                   out.distances.data(),
                   out.labels.data());
        });
        add("faiss", kind, parts, "host", ms);
    }

    /// All answers are those of the first index, bit for bit.
    void check(const std::string& kind, int parts, Answers got) {
        if (want_.labels.empty()) {
            want_ = std::move(got);
            return;
        }
        if (const int64_t wrong = wrongQueries(got, want_, width())) {
            std::printf(
                    "WRONG: %s of %d, %lld queries\n",
                    kind.c_str(),
                    parts,
                    (long long)wrong);
            ++wrong_;
        }
    }

    void add(
            const char* method,
            const std::string& kind,
            int parts,
            const char* arrays,
            double ms) {
        Row row = places_.row(
                "many_knn_graph", method, "flat", kind, parts, arrays);
        row.integer("n", shapes_.n)
                .integer("d", shapes_.d)
                .integer("k", shapes_.k)
                .integer("block", shapes_.block)
                .number("ms", ms);
        report_.add(row);
        std::printf(
                "%5.0fs %-10s %-8s %d on %d %-6s %10.2f ms\n",
                budget_.seconds(),
                method,
                kind.c_str(),
                parts,
                places_.devicesOf(parts),
                arrays,
                ms);
        std::fflush(stdout);
    }

    const Options& options_;
    const Shapes& shapes_;
    Budget budget_;
    Report report_;
    ManyPlaces places_;
    DeviceArray<float> vectors_;     ///< [n, d]
    std::vector<float> hostVectors_; ///< the same
    Answers want_;                   ///< of the first index
    int wrong_ = 0;
};

int runMain(int argc, char** argv) {
    Shapes shapes;
    shapes.kinds = {"replicas"};
    return runBench<ManyKnnGraphBench>(
            argc,
            argv,
            shapes,
            {numberOption("--n", "vectors (default: 2^20)", shapes.n),
             numberOption("--d", "dimensions", shapes.d),
             numberOption("--k", "neighbours (10)", shapes.k),
             numberOption(
                     "--block",
                     "queries a call and device (16384)",
                     shapes.block)},
            {"faiss"});
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
