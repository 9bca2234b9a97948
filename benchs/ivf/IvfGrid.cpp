#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "benchs/common/Labels.h"
#include "benchs/common/Report.h"
#include "benchs/ivf/IvfData.h"
#include "benchs/ivf/IvfRows.h"
#include "benchs/ivf/IvfSearches.h"
#include "benchs/ivf/IvfSettings.h"

namespace faiss_bits::bench {
namespace {

constexpr int kMostOfFaiss = 2048; // neighbours, and lists of a query
/// Labels that both have, of uncompressed vectors.
constexpr double kLeastShare = 0.99;

class IvfGrid {
   public:
    IvfGrid(const Options& options, const IvfSettings& settings)
            : options_(options),
              settings_(settings),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())) {}

    int run() {
        const int64_t mostQueries =
                *std::max_element(settings_.qs.begin(), settings_.qs.end());
        const auto vectors =
                makeIvfVectors(settings_.data, settings_.n, settings_.d, 1);
        const auto queries =
                makeIvfVectors(settings_.data, mostQueries, settings_.d, 2);
        for (const std::string& name : settings_.indexes) {
            for (int64_t nlist : settings_.nlists) {
                if (budget_.isSpent()) {
                    std::printf("--max-seconds is spent\n");
                    continue;
                }
                IvfShape shape;
                shape.kind = parseIvfKind(name);
                shape.d = settings_.d;
                shape.nlist = int(nlist);
                searches_.reset();
                searches_ = std::make_unique<IvfSearches>(
                        resources_,
                        shape,
                        vectors,
                        queries,
                        options_.wants("faiss"));
                const std::string& why = searches_->indexes().whyNot();
                if (!why.empty()) {
                    std::printf("faiss: %s\n", why.c_str());
                }
                runIndex();
            }
        }
        std::printf(
                "%zu rows in %s, %.0f s, %d wrong\n",
                report_.size(),
                options_.out.c_str(),
                budget_.seconds(),
                wrong_);
        return wrong_;
    }

   private:
    void runIndex() {
        for (int64_t nprobe : settings_.nprobes) {
            for (int64_t q : settings_.qs) {
                const auto probed = searches_->probed(int(nprobe), q);
                for (int64_t k : settings_.ks) {
                    if (!budget_.isSpent()) {
                        runCell(
                                {int(nprobe),
                                 q,
                                 int(k),
                                 probed.pairs,
                                 probed.vectors});
                    }
                }
            }
        }
    }

    void runCell(const IvfCell& cell) {
        IvfIndexes& indexes = searches_->indexes();
        const auto [ours, oursFound] =
                measure("faiss_bits", indexes.ours(), cell);
        if (oursFound.wrong) {
            std::printf(
                    "WRONG: %lld of %lld places\n",
                    (long long)oursFound.wrong,
                    (long long)oursFound.places);
            ++wrong_;
        }
        if (!indexes.rival() || cell.k > kMostOfFaiss ||
            cell.nprobe > kMostOfFaiss) {
            return;
        }
        const auto labels = searches_->labels();
        const auto [theirs, theirsFound] =
                measure("faiss", *indexes.rival(), cell);
        std::printf(
                "%64s %.2f times, recall %.3f\n",
                "",
                theirs.ms / ours.ms,
                theirsFound.recall());
        if (indexes.shape().kind.isFlat() && settings_.data != "duplicates") {
            const double share =
                    shareInBoth(labels, searches_->labels(), cell.k);
            if (share < kLeastShare) {
                std::printf("WRONG: only %.4f of the labels in both\n", share);
                ++wrong_;
            }
        }
    }

    std::pair<Measured, IvfReference::Found> measure(
            const std::string& method,
            faiss::gpu::GpuIndexIVF& index,
            const IvfCell& cell) {
        const Measured time =
                searches_->time(index, cell.nprobe, cell.q, cell.k, {});
        const auto found = searches_->check(cell.nprobe, cell.q, cell.k);
        const IvfShape& shape = searches_->indexes().shape();
        Row row = ivfRow("ivf", method, shape, settings_.data, settings_.n);
        report_.add(addIvfTimes(row, shape, cell, time.ms)
                            .number("recall", found.recall()));
        std::printf(
                "%5.0fs %-10s %-8s nlist=%-5d nprobe=%-4d q=%-5lld k=%-5d "
                "%10.4f ms (%d)\n",
                budget_.seconds(),
                method.c_str(),
                shape.kind.name.c_str(),
                shape.nlist,
                cell.nprobe,
                (long long)cell.q,
                cell.k,
                time.ms,
                time.repeats);
        std::fflush(stdout);
        return {time, found};
    }

    const Options& options_;
    const IvfSettings& settings_;
    Budget budget_;
    Report report_;
    IvfResources resources_;
    std::unique_ptr<IvfSearches> searches_;
    int wrong_ = 0;
};

} // namespace

int runIvfGrid(const Options& options, const IvfSettings& settings) {
    return IvfGrid(options, settings).run();
}

} // namespace faiss_bits::bench
