#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "benchs/FilterSelectors.h"
#include "benchs/common/Report.h"
#include "benchs/ivf/IvfData.h"
#include "benchs/ivf/IvfRows.h"
#include "benchs/ivf/IvfSearches.h"
#include "benchs/ivf/IvfSettings.h"
#include "faiss_bits/flat/DeviceSelector.h"

namespace faiss_bits::bench {
namespace {

/// A share of the ids, anywhere; of all: no filter.
struct IvfFilter {
    double share = 1;
    std::vector<bool> members;
    std::unique_ptr<gpu::DeviceSelector> selector;
};

class IvfFilters {
   public:
    IvfFilters(const Options& options, const IvfSettings& settings)
            : options_(options),
              settings_(settings),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())) {
        filters_.emplace_back();
        for (double share : settings.filters) {
            IvfFilter filter;
            filter.share = share;
            filter.members = makeMembers(settings.n, share, false);
            const NamedSelector named("bitmap", filter.members);
            filter.selector = std::make_unique<gpu::DeviceSelector>(
                    named.get(), settings.n);
            filters_.push_back(std::move(filter));
        }
    }

    int run() {
        const int64_t mostQueries =
                *std::max_element(settings_.qs.begin(), settings_.qs.end());
        const auto vectors =
                makeIvfVectors(settings_.data, settings_.n, settings_.d, 1);
        const auto queries =
                makeIvfVectors(settings_.data, mostQueries, settings_.d, 2);
        for (const std::string& name : settings_.indexes) {
            for (int64_t nlist : settings_.nlists) {
                IvfShape shape;
                shape.kind = parseIvfKind(name);
                shape.d = settings_.d;
                shape.nlist = int(nlist);
                searches_.reset();
                searches_ = std::make_unique<IvfSearches>(
                        resources_, shape, vectors, queries, false);
                for (int64_t nprobe : settings_.nprobes) {
                    for (int64_t q : settings_.qs) {
                        const auto probed = searches_->probed(int(nprobe), q);
                        for (int64_t k : settings_.ks) {
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
        std::printf(
                "%zu rows in %s, %.0f s, %d wrong\n",
                report_.size(),
                options_.out.c_str(),
                budget_.seconds(),
                wrong_);
        return wrong_;
    }

   private:
    void runCell(const IvfCell& cell) {
        if (budget_.isSpent()) {
            return;
        }
        double without = 0;
        for (const IvfFilter& filter : filters_) {
            faiss::SearchParameters params;
            params.sel = filter.selector.get();
            const bool isFilter = params.sel != nullptr;
            const Measured time = searches_->time(
                    searches_->indexes().ours(),
                    cell.nprobe,
                    cell.q,
                    cell.k,
                    {},
                    isFilter ? &params : nullptr);
            without = isFilter ? without : time.ms;
            const auto found = searches_->check(
                    cell.nprobe,
                    cell.q,
                    cell.k,
                    isFilter ? &filter.members : nullptr);
            wrong_ += found.wrong > 0;
            const IvfShape& shape = searches_->indexes().shape();
            Row row =
                    ivfRow("ivf_filters",
                           "faiss_bits",
                           shape,
                           settings_.data,
                           settings_.n);
            row.text("selector", isFilter ? "bitmap" : "none")
                    .number("allowed", filter.share);
            report_.add(addIvfTimes(row, shape, cell, time.ms));
            std::printf(
                    "%5.0fs %-8s nlist=%-5d nprobe=%-4d q=%-5lld k=%-5d %-6s "
                    "%5.1f%% %10.4f ms, %.2f times as fast%s\n",
                    budget_.seconds(),
                    shape.kind.name.c_str(),
                    shape.nlist,
                    cell.nprobe,
                    (long long)cell.q,
                    cell.k,
                    isFilter ? "filter" : "none",
                    100 * filter.share,
                    time.ms,
                    without / time.ms,
                    found.wrong ? " WRONG" : "");
            std::fflush(stdout);
        }
    }

    const Options& options_;
    const IvfSettings& settings_;
    Budget budget_;
    Report report_;
    std::vector<IvfFilter> filters_;
    IvfResources resources_;
    std::unique_ptr<IvfSearches> searches_;
    int wrong_ = 0;
};

} // namespace

int runIvfFilters(const Options& options, const IvfSettings& settings) {
    return IvfFilters(options, settings).run();
}

} // namespace faiss_bits::bench
