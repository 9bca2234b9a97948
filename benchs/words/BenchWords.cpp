// bench_words: range searches of a word list by edit distance, on the GPU and
// on the CPU of the same machine.
//
// On the GPU queries in the dictionary's letters lie on the device, as in
// Barrientos et al. 2012, and all results are left there as CSR: time is from
// there to there, sorting of the queries included. On the CPU time is from
// UTF-8 to CSR in memory. Every answer is compared with that of the CPU's trie
// before it is timed. bench_words.py makes the queries, and adds rivals.

#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/words/WordIndex.h"
#include "kernels/words/gpu/GpuWords.h"

namespace faiss_bits::bench {

namespace {

using words::Method;

/// The lines of a file.
struct Lines {
    std::string bytes;
    std::vector<idx_t> offsets{0};

    Lines(const std::string& path, idx_t most) {
        std::ifstream file(path);
        std::string line;
        while (idx_t(offsets.size()) <= most && std::getline(file, line)) {
            bytes += line;
            offsets.push_back(idx_t(bytes.size()));
        }
        if (offsets.size() < 2) {
            throw std::runtime_error(path + " has no line");
        }
    }

    words::Utf8Words view(const char* name) const {
        words::Utf8Words out;
        out.count = idx_t(offsets.size()) - 1;
        out.bytes = bytes.data();
        out.offsets = offsets.data();
        out.name = name;
        return out;
    }
};

struct Settings {
    std::string words, queries, dictionary;
    std::vector<Method> methods{
            Method::Trie,
            Method::BruteForce,
            Method::ListOfClusters,
            Method::Sss};
    std::vector<int64_t> radii{1, 2, 3};
    std::vector<int64_t> threads; // of the CPU; none: the GPU alone
    idx_t mostQueries = 40000;    // on the GPU and with several threads
    idx_t sequentialQueries = 2000;
};

void expectSame(
        const words::WordRange& expected,
        const words::DeviceRange& found,
        const std::string& what) {
    words::WordRange host;
    host.limits.resize(expected.limits.size());
    host.ids.resize(size_t(found.total));
    host.distances.resize(size_t(found.total));
    const auto copy = [](auto& to, const void* from) {
        BITS_CUDA_CHECK(cudaMemcpy(
                to.data(),
                from,
                to.size() * sizeof(to[0]),
                cudaMemcpyDeviceToHost));
    };
    BITS_CUDA_CHECK(cudaDeviceSynchronize());
    copy(host.limits, found.limits);
    copy(host.ids, found.ids);
    copy(host.distances, found.distances);
    if (host.limits != expected.limits || host.ids != expected.ids ||
        host.distances != expected.distances) {
        throw std::runtime_error(what + ": not the answer of the CPU");
    }
}

class Bench {
   public:
    Bench(const Settings& settings, Report& report)
            : settings_(settings),
              report_(report),
              words_(settings.words, idx_t(1) << 30),
              index_(words_.view("words")) {}

    void runGpu() {
        const Lines queries(settings_.queries, settings_.mostQueries);
        const auto letters =
                index_.dictionary().encode(queries.view("queries"));
        words::GpuWords gpu(index_.dictionary());
        const auto uploaded = gpu.upload(letters, 0, letters.count(), nullptr);
        for (const int64_t r : settings_.radii) {
            const words::WordRange expected =
                    index_.range(letters, uint32_t(r), {});
            for (const Method method : settings_.methods) {
                if (method == Method::ListOfClusters && !gpu.hasClusters()) {
                    gpu.setClusters(index_.clusters({}));
                }
                if (method == Method::Sss && !gpu.hasPivots()) {
                    gpu.setPivots(index_.pivots({}));
                }
                const auto search = [&] {
                    return gpu.range(
                            uploaded,
                            uint32_t(r),
                            method,
                            idx_t(1) << 40,
                            nullptr);
                };
                expectSame(
                        expected,
                        search(),
                        std::string(nameOf(method)) + " on the GPU");
                TimingMode mode;
                mode.wallClock = true;
                const Measured time = timeCall([&](int) { search(); }, mode);
                add("gpu",
                    method,
                    0,
                    r,
                    letters.count(),
                    time.ms,
                    idx_t(expected.ids.size()),
                    -1);
            }
        }
    }

    void runCpu(int threads) {
        const Lines queries(
                settings_.queries,
                threads == 1 ? settings_.sequentialQueries
                             : settings_.mostQueries);
        const auto texts = queries.view("queries");
        for (const int64_t r : settings_.radii) {
            words::WordOptions trie;
            trie.method = Method::Trie;
            const words::WordRange expected = index_.range(texts, r, trie);
            for (const Method method : settings_.methods) {
                words::WordOptions options;
                options.method = method;
                options.threads = threads;
                words::WordStats stats;
                options.stats = &stats;
                index_.range(texts, 0, options); // makes what it needs
                stats.distances = 0;
                const auto found = index_.range(texts, r, options);
                const double share = double(stats.distances) /
                        double(texts.count) /
                        double(index_.dictionary().size());
                if (found.limits != expected.limits ||
                    found.ids != expected.ids ||
                    found.distances != expected.distances) {
                    throw std::runtime_error(
                            std::string(nameOf(method)) +
                            ": not the answer of the trie");
                }
                TimingMode mode;
                mode.wallClock = true;
                const Measured time = timeCall(
                        [&](int) { index_.range(texts, r, options); }, mode);
                add("cpu",
                    method,
                    threads,
                    r,
                    texts.count,
                    time.ms,
                    idx_t(expected.ids.size()),
                    share);
            }
        }
    }

   private:
    void add(
            const char* device,
            Method method,
            int threads,
            int64_t r,
            idx_t queries,
            double ms,
            idx_t results,
            double share) {
        Row row;
        row.text("bench", "words")
                .text("method", nameOf(method))
                .text("device", device)
                .text("dictionary", settings_.dictionary)
                .integer("words", index_.dictionary().size())
                .integer("queries", queries)
                .integer("r", r);
        if (threads > 0) {
            row.integer("threads", threads);
        }
        row.number("ms", ms).integer("results", results);
        if (share >= 0) {
            row.number("evaluations", share); // of all distances
        }
        report_.add(row);
        std::printf(
                "%-14s %-4s %3d %-16s r=%lld %8lld queries %10.3f ms\n",
                settings_.dictionary.c_str(),
                device,
                threads,
                nameOf(method),
                (long long)r,
                (long long)queries,
                ms);
        std::fflush(stdout);
    }

    Settings settings_;
    Report& report_;
    Lines words_;
    words::WordIndex index_;
};

int run(int argc, char** argv) {
    Settings settings;
    bool onGpu = true;
    const Options options = parseOptions(
            argc,
            argv,
            {{"--words",
              "file with a word a line",
              [&](const std::string& value) { settings.words = value; }},
             {"--queries",
              "file with a query a line",
              [&](const std::string& value) { settings.queries = value; }},
             {"--dictionary",
              "name of the words in the rows",
              [&](const std::string& value) { settings.dictionary = value; }},
             {"--methods",
              "names with commas; default: all",
              [&](const std::string& value) {
                  settings.methods.clear();
                  for (const std::string& name : splitList(value)) {
                      settings.methods.push_back(words::methodOf(name));
                  }
              }},
             {"--radii",
              "distances, default 1,2,3",
              [&](const std::string& value) {
                  settings.radii = parseNumbers(value);
              }},
             {"--threads",
              "also on the CPU, with so many; default: not there",
              [&](const std::string& value) {
                  settings.threads = parseNumbers(value);
              }},
             {"--gpu", "0: not on the GPU", [&](const std::string& value) {
                  onGpu = value != "0";
              }}});
    const Meta meta = collectMeta(options, 0);
    Report report(options.out, meta);
    Bench bench(settings, report);
    if (onGpu) {
        bench.runGpu();
    }
    for (const int64_t threads : settings.threads) {
        bench.runCpu(int(threads));
    }
    return 0;
}

} // namespace

} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    return faiss_bits::bench::runProgram(argc, argv, faiss_bits::bench::run);
}
