#include "faiss_bits/flat/SearchReport.h"

#include <algorithm>

#include "faiss_bits/common/PagedCall.h"
#include "faiss_bits/common/PlanLog.h"
#include "faiss_bits/common/PlanText.h"
#include "kernels/knn/FlatKnnCost.h"
#include "kernels/knn/FlatKnnSummary.h"
#include "kernels/knn/fused/FusedCost.h"

namespace faiss_bits::gpu {

std::string GpuSearchPlan::toString() const {
    std::string text = formatMessage(
            "%s, %lld page%s of %lld queries, tiles of %lld queries x %lld "
            "vectors, %lld candidates, search image: %s, scratch %.1f MB, "
            "expected %.3g ms",
            method.c_str(),
            (long long)pages,
            pages == 1 ? "" : "s",
            (long long)queriesPerPage,
            (long long)tileQueries,
            (long long)tileVectors,
            (long long)candidates,
            searchImage.c_str(),
            double(scratchBytes) / 1e6,
            expectedMs);
    return details.empty() ? text : text + " (" + details + ")";
}

namespace detail {

namespace {

const char* textOf(ImageUse use) {
    switch (use) {
        case ImageUse::None:
            return "none";
        case ImageUse::NotYet:
            return "not_yet";
        case ImageUse::Make:
            return "make";
        default:
            return "kept";
    }
}

} // namespace

GpuSearchPlan reportOf(
        const FlatKnnPlan& plan,
        const FlatKnnProblem& page,
        const PagePlan& pages,
        idx_t queries,
        ImageUse image,
        const DeviceSpeed& speed) {
    const FlatKnnSummary summary = summaryOf(plan, page, speed);
    GpuSearchPlan report;
    report.method = summary.method;
    report.pages = pages.pages;
    report.queriesPerPage = pages.rowsPerPage;
    report.tileQueries = summary.tileQueries;
    report.tileVectors = summary.tileVectors;
    report.candidates = summary.candidates;
    report.selection = summary.selection;
    report.searchImage = textOf(image);
    report.scratchBytes = summary.scratchBytes;
    report.details = summary.details;
    double time = summary.microseconds * double(queries) /
            double(std::max<idx_t>(pages.rowsPerPage, 1));
    if (image == ImageUse::Make) {
        time += searchImageMicroseconds(page, speed);
    }
    report.expectedMs = time / 1e3;
    return report;
}

GpuSearchPlan planSearch(
        const GpuContext& context,
        const ExpectedSearch& search,
        const DeviceSpeed& speed) {
    FlatKnnProblem page = search.problem;
    const idx_t queries = page.numQueries;
    ExpectedMemory memory(context);
    memory.take(search.filter.bitBytes);
    memory.take(search.filter.listBytes);

    PagedCall call(context);
    const Place place{search.hostArrays, search.hostArrays};
    call.expectInput(place, sizeof(float) * page.d);
    call.expectOutput(place, sizeof(float) * page.k);
    call.expectOutput(place, sizeof(idx_t) * page.k);
    const PagePlan pages = call.plan(search.limits);
    memory.take(call.stagingBytes());

    page.batchQueries = queries;
    page.numQueries = pages.rowsPerPage;
    search.filter.expectFor(page);
    const ImageUse image = search.facts
            ? search.facts->expectFor(page, search.facts->isOwn(context))
            : ImageUse::None;
    if (page.dataType != DataType::Float32) {
        memory.take(size_t(page.numQueries) * page.d * sizeOf(page.dataType));
        // Not null, and never read.
        page.exactQueries = page.mode != SearchMode::Plain
                ? reinterpret_cast<const float*>(&page)
                : nullptr;
    }
    const FlatKnnPlan plan = planFlatKnn(page, memory.scratchBudget());
    return reportOf(plan, page, pages, queries, image, speed);
}

void logSearch(
        const char* what,
        const FlatKnnPlan& plan,
        const FlatKnnProblem& page,
        const PagePlan& pages,
        idx_t queries,
        ImageUse image,
        int device) {
    const auto shape = [&] {
        std::string text = faiss_bits::detail::searchShapeText(
                what,
                queries,
                page.numVectors,
                page.d,
                page.k,
                page.metric,
                faiss_bits::detail::textOf(page.dataType),
                page.mode);
        if (page.allowedIds) {
            text += ", filter by a list of " + std::to_string(page.numAllowed);
        } else if (page.allowedBits) {
            text += ", filter by bits";
        }
        // It is another plan where the image is kept.
        if (image != ImageUse::None) {
            text += std::string(", search image ") + textOf(image);
        }
        return text;
    };
    faiss_bits::detail::logPlan(shape, [&] {
        return reportOf(plan, page, pages, queries, image, deviceSpeed(device))
                .toString();
    });
}

} // namespace detail

} // namespace faiss_bits::gpu
