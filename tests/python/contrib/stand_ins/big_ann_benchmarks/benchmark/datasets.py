"""What a data set of big-ann-benchmarks offers, and where they are named."""


class Dataset:
    def get_dataset(self):
        raise NotImplementedError

    def get_dataset_iterator(self, bs=512, split=(1, 0)):
        raise NotImplementedError

    def get_queries(self):
        raise NotImplementedError

    def search_type(self):
        raise NotImplementedError

    def distance(self):
        raise NotImplementedError

    def data_type(self):
        raise NotImplementedError

    def default_count(self):
        return 10


DATASETS = {}
