#include "kernels/knn/fused/tensor/SearchImage.h"

#include <algorithm>

#include "kernels/knn/Norms.h"
#include "kernels/knn/fused/FusedParams.h"
#include "kernels/knn/fused/SampleKernels.h"
#include "kernels/knn/fused/tensor/ListedImage.h"
#include "kernels/knn/fused/tensor/TensorScan.h"
#include "kernels/knn/fused/tensor/VectorImage.h"

namespace faiss_bits {

SearchImage::SearchImage(const FlatKnnProblem& p, WorkspaceSlices& slices)
        : rows(p.imageInOrder ? SpreadRows{} : spreadRowsOf(p.numVectors)),
          samples(uint32_t(std::min<idx_t>(kMostSamples, p.numVectors / 8))),
          secondSamples(secondSamplesOf(p.numVectors)) {
    void* memory =
            slices.take<uint8_t>(tensorImageBytes(p.numVectors, p.d, false));
    if (memory) {
        image = tensorImageAt(memory, p.numVectors, p.d, false);
    }
    const size_t components = size_t(samples) * p.d;
    sample = slices.take<uint16_t>(components);
    wide_ = slices.take<float>(components);
    scratch_ = slices.take<float>(2);
    if (p.metric != Metric::InnerProduct) {
        sampleNorms = slices.take<float>(samples);
    }
    center = slices.take<float>(p.d);
    if (secondSamples > 0) {
        memory = slices.take<uint8_t>(
                tensorImageBytes(secondSamples, p.d, false));
        if (memory) {
            second = tensorImageAt(memory, secondSamples, p.d, false);
            second.facts = image.facts;
        }
        secondIds = slices.take<int32_t>(secondSamples);
    }
    if (hasByteImage(p)) {
        memory = slices.take<uint8_t>(byteImageBytes(p.numVectors, p.d, false));
        if (memory) {
            bytes = byteImageAt(memory, p.numVectors, p.d, false);
        }
    }
}

bool hasByteImage(const FlatKnnProblem& p) {
    return p.imageHasBytes && p.metric == Metric::L2 && !p.imageInOrder &&
            secondSamplesOf(p.numVectors) > 0 && meetsByteScan(p.d) &&
            hasTensorScan(TensorScanKernel::Wgmma, p.device);
}

idx_t secondSamplesOf(idx_t n) {
    return n >= kLeastOfSecond ? n / kSecondShare : 0;
}

size_t searchImageBytes(const FlatKnnProblem& problem) {
    WorkspaceSlices slices;
    SearchImage(problem, slices);
    return slices.used();
}

void runSearchImage(
        const FlatKnnProblem& p,
        const SearchImage& made,
        cudaStream_t stream) {
    const idx_t samples = made.samples;
    const bool isCosine = p.metric == Metric::Cosine;
    runGatherSample(p, samples, made.wide_, stream);
    if (isCosine) {
        runNormalize(made.wide_, samples, p.d, stream);
    }
    runCenter(made.wide_, samples, p.d, made.scratch_, made.center, stream);
    if (isCosine) {
        runNormalizedSample(
                made.wide_,
                samples,
                p.d,
                made.center,
                made.sample,
                made.sampleNorms,
                stream);
    } else {
        runSubtract(made.wide_, samples, p.d, made.center, made.wide_, stream);
        runToBFloat16(made.wide_, samples * p.d, made.sample, stream);
    }
    if (p.metric == Metric::L2) {
        runSquaredNorms(
                made.sample,
                DataType::BFloat16,
                true,
                samples,
                p.d,
                made.sampleNorms,
                stream);
    }
    TensorImageProblem image;
    if (isCosine) {
        image.inverseNorms = p.vectorFacts;
    } else {
        float* greatest = made.scratch_;
        runGreatestComponent(
                p.vectors,
                p.dataType,
                p.numVectors,
                p.d,
                made.center,
                false,
                greatest,
                stream);
        image.greatest = greatest;
    }
    image.rows = p.vectors;
    image.type = p.dataType;
    image.n = p.numVectors;
    image.d = p.d;
    image.center = made.center;
    image.image = made.image;
    runVectorImage(image, {made.rows, p.metric == Metric::L2}, stream);
    if (made.bytes.pieces) {
        runByteImage(
                made.image,
                p.numVectors,
                p.d,
                image.greatest,
                made.bytes,
                stream);
    }
    if (made.secondSamples > 0) {
        runSampleIds(p.numVectors, made.secondSamples, made.secondIds, stream);
        runListedImage(
                made.image,
                made.rows,
                p.d,
                made.secondIds,
                made.secondSamples,
                made.second,
                stream);
    }
}

} // namespace faiss_bits
