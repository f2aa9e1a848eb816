"""Runs functions of SciPy or scikit-learn on NumPy's arrays and on Prong's tensors.

Usage: other_libraries.py {scipy,sklearn}    prints a line of JSON: function to "same", or what was wrong
A process of its own: SciPy reads SCIPY_ARRAY_API when it is imported.
"""

import importlib
import json
import os
import sys
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np  # noqa: E402
from prong import Tensor  # noqa: E402
from prong import array_api as xp  # noqa: E402

DRAW = np.random.default_rng(0)


def scipy_calls():
    parts = "special stats fft integrate signal ndimage cluster.vq spatial.transform differentiate"
    m = {part: importlib.import_module(f"scipy.{part}") for part in parts.split()}
    x = DRAW.uniform(0.1, 2, (5, 8))
    return [x], {
        "logsumexp": lambda x: m["special"].logsumexp(x, axis=1),
        "softmax": lambda x: m["special"].softmax(x, axis=1),
        "gammaln": lambda x: m["special"].gammaln(x),
        "xlogy": lambda x: m["special"].xlogy(x, x),
        "zscore": lambda x: m["stats"].zscore(x, axis=1),
        "gmean": lambda x: m["stats"].gmean(x, axis=1),
        "skew": lambda x: m["stats"].skew(x, axis=1),
        "entropy": lambda x: m["stats"].entropy(x, axis=1),
        "ttest_1samp": lambda x: m["stats"].ttest_1samp(x, 1.0, axis=1).pvalue,
        "pearsonr": lambda x: m["stats"].pearsonr(x[:2], x[2:4], axis=1).statistic,
        "fft": lambda x: m["fft"].fft(x),
        "rfftn": lambda x: m["fft"].rfftn(x),
        "trapezoid": lambda x: m["integrate"].trapezoid(x, axis=1),
        "cumulative_trapezoid": lambda x: m["integrate"].cumulative_trapezoid(x, axis=1),
        "whiten": lambda x: m["cluster.vq"].whiten(x),
        "Rotation": lambda x: m["spatial.transform"].Rotation.from_rotvec(x[:, :3]).as_matrix(),
        "derivative": lambda x: m["differentiate"].derivative(lambda y: y**3, x).df,
        "fftconvolve": lambda x: m["signal"].fftconvolve(x, x),
        "hilbert": lambda x: m["signal"].hilbert(x),
        "gaussian_filter": lambda x: m["ndimage"].gaussian_filter(x, 1.0),
    }


def sklearn_calls():
    importlib.import_module("sklearn").set_config(array_api_dispatch=True)
    parts = (
        "decomposition linear_model discriminant_analysis naive_bayes mixture metrics preprocessing"
    )
    m = {part: importlib.import_module(f"sklearn.{part}") for part in parts.split()}
    x = DRAW.normal(size=(60, 5))
    y, z = (x.sum(1) > 0).astype("int64"), x @ DRAW.normal(size=5)
    analysis = m["discriminant_analysis"].LinearDiscriminantAnalysis
    mixture = m["mixture"].GaussianMixture(2, random_state=0, init_params="random")
    pca, pairs = m["decomposition"].PCA, m["metrics"].pairwise
    calls = {
        "PCA": lambda x, y, z: pca(3, svd_solver="full").fit_transform(x),
        "Ridge": lambda x, y, z: m["linear_model"].Ridge(solver="svd").fit(x, z).predict(x),
        "LinearDiscriminantAnalysis": lambda x, y, z: analysis().fit(x, y).predict_proba(x),
        "GaussianNB": lambda x, y, z: m["naive_bayes"].GaussianNB().fit(x, y).predict_proba(x),
        "GaussianMixture": lambda x, y, z: mixture.fit(x).means_,
        "confusion_matrix": lambda x, y, z: m["metrics"].confusion_matrix(y, 1 - y),
        "f1_score": lambda x, y, z: m["metrics"].f1_score(y, 1 - y),
        "r2_score": lambda x, y, z: m["metrics"].r2_score(z, z + y),
        "rbf_kernel": lambda x, y, z: pairs.rbf_kernel(x),
        "cosine_similarity": lambda x, y, z: pairs.cosine_similarity(x),
    }
    for name in ("StandardScaler", "MinMaxScaler", "PolynomialFeatures", "Normalizer"):
        scaler = getattr(m["preprocessing"], name)
        calls[name] = lambda x, y, z, scaler=scaler: scaler().fit_transform(x)
    return [x, y, z], calls


def outcome(call, given) -> str:
    expected = call(*given)
    try:
        made = call(*(xp.asarray(each) for each in given))
        if isinstance(expected, np.ndarray) and not isinstance(made, Tensor):
            return f"gave {type(made).__name__}, no tensor"
        numbers = made.numpy() if isinstance(made, Tensor) else made
        np.testing.assert_allclose(numbers, expected, rtol=1e-7, atol=1e-9)
    except Exception as error:  # any: it is what the caller shows
        return f"{type(error).__name__}: {error}"
    return "same"


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # SciPy says that its support is experimental
    arrays, calls = {"scipy": scipy_calls, "sklearn": sklearn_calls}[sys.argv[1]]()
    print(json.dumps({name: outcome(call, arrays) for name, call in calls.items()}))
