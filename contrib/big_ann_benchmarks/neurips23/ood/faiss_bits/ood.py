"""Exact search in the track of queries unlike the vectors (OOD): exact
search does not mind where the queries come from."""

from benchmark.algorithms import faiss_bits_flat
from neurips23.ood.base import BaseOODANN


class FaissBitsCPU(BaseOODANN, faiss_bits_flat.FaissBitsCPU):
    __doc__ = faiss_bits_flat.FaissBitsCPU.__doc__


class FaissBitsGPU(BaseOODANN, faiss_bits_flat.FaissBitsGPU):
    __doc__ = faiss_bits_flat.FaissBitsGPU.__doc__
