"""The encoding of text that is not UTF-8 is detected, so that words are read as they were written."""

# ruff: noqa: RUF001  # words of many alphabets

from __future__ import annotations

from pathlib import Path

import pytest

from subgrove._cli.csv_records import detected_encoding, possible_encodings

TEXTS = {
    "cp1252": "München\nKöln\nOrléans\nBesançon\nPeña\nÅrhus\n",
    "cp1250": "Łódź\nKraków\nGdańsk\nPoznań\nCzęstochowa\n",
    "cp1251": "Москва\nКазань\nСамара\n",
    "koi8_r": "Москва\nКазань\nСамара\n",
    "cp1253": "Αθήνα\nΠάτρα\nΘεσσαλονίκη\n",
    "cp1254": "Diyarbakır\nEskişehir\nKahramanmaraş\nMuğla\nBalıkesir\nKırıkkale\nTekirdağ\nAğrı\nElazığ\nIğdır\n",
    "cp1256": "القاهرة\nالرياض\n",
    "mac_roman": "München\nKöln\nDüsseldorf\n",
    "cp932": "東京\n大阪\n名古屋\n",
    "euc_jp": "東京\n大阪\n名古屋\n",
    "gb18030": "北京\n上海\n广州\n",
    "big5": "臺北\n高雄\n臺中\n",
    "cp949": "서울\n부산\n대구\n",
}


@pytest.mark.parametrize("encoding", TEXTS)
def test_words_are_read_as_written(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(b"a,b\n" + TEXTS[encoding].encode(encoding))
    found, note = detected_encoding(path)
    assert path.read_bytes().decode(found) == "a,b\n" + TEXTS[encoding]
    assert TEXTS[encoding].split()[0] in note


@pytest.mark.parametrize("sign", ["5 €", "£5", "5°C", "café"])
def test_signs_and_single_accents_are_read_as_windows_1252(tmp_path: Path, sign: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(f"a,b\n1,{sign}\n".encode("cp1252"))
    assert detected_encoding(path)[0] == "cp1252"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_is_declared_by_its_bytes(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes("a,b\n1,ü\n".encode(encoding))
    found, _ = next(possible_encodings(path, None))
    assert path.read_bytes().decode(found) == "a,b\n1,ü\n"
