"""What `membership` refuses before any work; everything is returned as a copy."""

import numpy as np

from coursekit import _arguments


def checked_logits(logits, name="logits", *, ndim=None):
    """Return logits (..., records, classes) as float64."""
    array = _arguments.finite_array(logits, name)
    if array.ndim < 2 or (ndim and array.ndim != ndim) or 0 in array.shape:
        shape = "(models, records, classes)" if ndim == 3 else "(records, classes)"
        raise ValueError(f"{name} must have the shape {shape}, got {array.shape}.")
    if array.shape[-1] < 2:
        raise ValueError(f"{name} must have at least 2 classes, one column each, got 1.")
    return array


def checked_labels(y, records, classes=None):
    """Return y as one whole number for each record, from 0 to classes - 1."""
    array = _arguments.finite_array(y, "y")
    if array.shape != (records,):
        raise ValueError(f"y must hold one class for each of {records} records, got {array.shape}.")
    wrong = array[(array % 1 != 0) | (array < 0) | (array >= (classes or np.inf))]
    if len(wrong):
        upto = f" to {classes - 1}" if classes else ""
        raise ValueError(f"y must hold classes from 0{upto}, got {wrong[0]:g}.")
    return array.astype(np.int64)


def checked_membership(membership, shape, name="membership"):
    """Return membership, booleans of this shape; 0 and 1 are refused, they may be anything."""
    array = np.array(_arguments.unmasked(membership, name))
    if array.dtype != bool:
        raise TypeError(f"{name} must hold True (IN) and False (OUT) only, got {array.dtype}.")
    if array.shape != tuple(shape):
        raise ValueError(f"{name} must have the shape {tuple(shape)}, got {array.shape}.")
    return array


def both_sides(membership, of=""):
    """Refuse a group in which all are members, or none."""
    if membership.all() or not membership.any():
        raise ValueError(f"the shadow models need members and non-members{of}.")


def checked_signals(signal, shadow_signals, shadow_membership, *, offline=False):
    """Return signal (..., records), and shadow signals and membership (models, records).

    Offline, signals of IN shadows are not read: they may be NaN, and are returned as 0.
    """
    signal = _arguments.finite_array(signal, "signal")
    shadow = np.asarray(_arguments.unmasked(shadow_signals, "shadow_signals"))
    if shadow.ndim != 2 or not shadow.size or signal.shape[-1:] != shadow.shape[1:]:
        raise ValueError(
            "signal must have the shape (records,) and shadow_signals (models, records), "
            f"got {signal.shape} and {shadow.shape}."
        )
    membership = checked_membership(shadow_membership, shadow.shape, "shadow_membership")
    if offline:
        shadow = np.where(membership, 0, shadow)
    return signal, _arguments.finite_array(shadow, "shadow_signals"), membership


def refuse_few(these, side, least=1, advice=""):
    """Refuse unless each record has at least `least` shadow models on this side, IN or OUT."""
    few = np.count_nonzero(these.sum(axis=0) < least)
    if few:
        raise ValueError(
            f"each record needs at least {least} {side} shadow model(s); "
            f"{few} of {these.shape[1]} records have fewer.{advice}"
        )
