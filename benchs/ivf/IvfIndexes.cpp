#include "benchs/ivf/IvfIndexes.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/gpu/GpuIndexIVFFlat.h>
#include <faiss/gpu/GpuIndexIVFPQ.h>
#include <faiss/gpu/GpuIndexIVFScalarQuantizer.h>

#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFPQ.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFScalarQuantizer.h"

namespace faiss_bits::bench {

namespace {

constexpr int kBits = 8; // of a part of a product code
/// Tables of float32 fit the shared memory that FAISS allows.
constexpr int kMostFloatParts = 48;

using Kind = faiss::ScalarQuantizer::QuantizerType;

struct ScalarKind {
    const char* name;
    Kind type;
};

constexpr ScalarKind kScalarKinds[] = {
        {"ivf_sq8", Kind::QT_8bit},
        {"ivf_sq6", Kind::QT_6bit},
        {"ivf_sq4", Kind::QT_4bit},
        {"ivf_fp16", Kind::QT_fp16},
};

const ScalarKind* scalarKind(const std::string& name) {
    for (const ScalarKind& kind : kScalarKinds) {
        if (name == kind.name) {
            return &kind;
        }
    }
    return nullptr;
}

/// Trains an index of ours, and what it has learned to a CPU index.
template <class Trained, class Trainer>
std::unique_ptr<faiss::IndexIVF> learn(
        const IvfShape& shape,
        Trainer& trainer,
        int64_t n,
        const float* vectors) {
    trainer.cp.niter = shape.iterations;
    trainer.cp.max_points_per_centroid = shape.pointsOfList;
    trainer.cp.min_points_per_centroid = 1; // no warning
    trainer.train(n, vectors);
    auto trained = std::make_unique<Trained>();
    trainer.copyTo(trained.get());
    return trained;
}

/// The rival, or why there is none.
template <class Index, class... Arguments>
std::unique_ptr<faiss::gpu::GpuIndexIVF> attempt(
        std::string& whyNot,
        const Arguments&... arguments) {
    try {
        return std::make_unique<Index>(arguments...);
    } catch (const std::exception& error) {
        whyNot = error.what();
        return nullptr;
    }
}

} // namespace

IvfKind parseIvfKind(const std::string& name) {
    const IvfKind kind{name};
    if (!kind.isFlat() && !scalarKind(name) && kind.parts() < 1) {
        std::fprintf(stderr, "--indexes: '%s' is none\n", name.c_str());
        std::exit(2);
    }
    return kind;
}

IvfIndexes::IvfIndexes(
        IvfResources& resources,
        const IvfShape& shape,
        int64_t n,
        const float* vectors,
        bool withRival)
        : shape_(shape) {
    if (shape.kind.isFlat()) {
        gpu::GpuIndexBitsIVFFlat trainer(
                &resources.ofOurs, shape.d, shape.nlist, shape.metric);
        trained_ = learn<faiss::IndexIVFFlat>(shape, trainer, n, vectors);
        const auto* of = static_cast<faiss::IndexIVFFlat*>(trained_.get());
        ours_ = std::make_unique<gpu::GpuIndexBitsIVFFlat>(
                &resources.ofOurs, of);
        if (withRival) {
            rival_ = attempt<faiss::gpu::GpuIndexIVFFlat>(
                    whyNot_, &resources.ofRival, of);
        }
    } else if (const int parts = shape.kind.parts()) {
        faiss::gpu::GpuIndexIVFPQConfig config;
        config.useFloat16LookupTables = parts > kMostFloatParts;
        gpu::GpuIndexBitsIVFPQ trainer(
                &resources.ofOurs,
                shape.d,
                shape.nlist,
                parts,
                kBits,
                shape.metric,
                config);
        trainer.pq.cp.niter = shape.iterations;
        trainer.pq.cp.max_points_per_centroid = shape.pointsOfList;
        trained_ = learn<faiss::IndexIVFPQ>(shape, trainer, n, vectors);
        const auto* of = static_cast<faiss::IndexIVFPQ*>(trained_.get());
        ours_ = std::make_unique<gpu::GpuIndexBitsIVFPQ>(
                &resources.ofOurs, of, config);
        // Its faster way, where it has one.
        config.usePrecomputedTables = shape.metric == faiss::METRIC_L2;
        if (withRival) {
            rival_ = attempt<faiss::gpu::GpuIndexIVFPQ>(
                    whyNot_, &resources.ofRival, of, config);
        }
    } else {
        gpu::GpuIndexBitsIVFScalarQuantizer trainer(
                &resources.ofOurs,
                shape.d,
                shape.nlist,
                scalarKind(shape.kind.name)->type,
                shape.metric);
        trained_ = learn<faiss::IndexIVFScalarQuantizer>(
                shape, trainer, n, vectors);
        const auto* of =
                static_cast<faiss::IndexIVFScalarQuantizer*>(trained_.get());
        ours_ = std::make_unique<gpu::GpuIndexBitsIVFScalarQuantizer>(
                &resources.ofOurs, of);
        if (withRival) {
            rival_ = attempt<faiss::gpu::GpuIndexIVFScalarQuantizer>(
                    whyNot_, &resources.ofRival, of);
        }
    }
}

IvfIndexes::~IvfIndexes() = default;

void IvfIndexes::add(int64_t n, const float* vectors) {
    ours_->add(n, vectors);
    if (rival_) {
        rival_->add(n, vectors);
    }
}

std::vector<float> IvfIndexes::decoded(int64_t list) const {
    const auto codes = ours_->getListVectorData(int(list));
    const int64_t length = ours_->getListLength(int(list));
    std::vector<float> vectors(size_t(length) * shape_.d);
    if (shape_.kind.isFlat()) {
        const auto* values = reinterpret_cast<const float*>(codes.data());
        std::copy_n(values, vectors.size(), vectors.begin());
        return vectors;
    }
    bool isResidual = false;
    if (shape_.kind.parts()) {
        const auto& index = dynamic_cast<faiss::IndexIVFPQ&>(*trained_);
        index.pq.decode(codes.data(), vectors.data(), length);
        isResidual = index.by_residual;
    } else {
        const auto& index =
                dynamic_cast<faiss::IndexIVFScalarQuantizer&>(*trained_);
        index.sq.decode(codes.data(), vectors.data(), length);
        isResidual = index.by_residual;
    }
    if (isResidual) {
        std::vector<float> centroid(shape_.d);
        trained_->quantizer->reconstruct(list, centroid.data());
        for (size_t i = 0; i < vectors.size(); ++i) {
            vectors[i] += centroid[i % shape_.d];
        }
    }
    return vectors;
}

} // namespace faiss_bits::bench
