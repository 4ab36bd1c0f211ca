CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.configurations (
    id integer NOT NULL,
    pattern character varying(500) NOT NULL,
    api character varying(20) NOT NULL,
    operation character varying(20) NOT NULL,
    file_per_process boolean NOT NULL,
    collective boolean NOT NULL,
    random_offsets integer NOT NULL,
    transfer_size bigint NOT NULL,
    block_size bigint NOT NULL,
    segments bigint NOT NULL,
    tasks integer,
    nodes integer,
    odirect boolean NOT NULL,
    fsync boolean NOT NULL,
    reorder_tasks boolean NOT NULL,
    intra_test_barriers boolean NOT NULL
);
CREATE SEQUENCE public.configurations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.configurations_id_seq OWNED BY public.configurations.id;
CREATE TABLE public.imports (
    id integer NOT NULL,
    system_id integer NOT NULL,
    sha256 character varying(64) NOT NULL,
    file character varying(1000) NOT NULL,
    format character varying(40) NOT NULL,
    imported_at character varying(40) NOT NULL
);
CREATE SEQUENCE public.imports_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.imports_id_seq OWNED BY public.imports.id;
CREATE TABLE public.measurements (
    id integer NOT NULL,
    system_id integer NOT NULL,
    configuration_id integer NOT NULL,
    import_id integer NOT NULL,
    io_nodes integer NOT NULL,
    repetition integer NOT NULL,
    bandwidth_mib_s double precision NOT NULL,
    bytes bigint,
    time_s double precision,
    started character varying(40),
    engine character varying(40) NOT NULL,
    engine_version character varying(40),
    command character varying(4000),
    used boolean NOT NULL,
    note character varying(1000)
);
CREATE SEQUENCE public.measurements_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.measurements_id_seq OWNED BY public.measurements.id;
CREATE TABLE public.systems (
    id integer NOT NULL,
    name character varying(200) NOT NULL
);
CREATE SEQUENCE public.systems_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.systems_id_seq OWNED BY public.systems.id;
ALTER TABLE ONLY public.configurations ALTER COLUMN id SET DEFAULT nextval('public.configurations_id_seq'::regclass);
ALTER TABLE ONLY public.imports ALTER COLUMN id SET DEFAULT nextval('public.imports_id_seq'::regclass);
ALTER TABLE ONLY public.measurements ALTER COLUMN id SET DEFAULT nextval('public.measurements_id_seq'::regclass);
ALTER TABLE ONLY public.systems ALTER COLUMN id SET DEFAULT nextval('public.systems_id_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('0001');
INSERT INTO public.configurations VALUES (1, 'ior -a POSIX -w -F -e -b 1m -t 64k tasks=16 nodes=8', 'POSIX', 'write', true, false, 0, 65536, 1048576, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (2, 'ior -a POSIX -w -F -e -b 4m -t 1m tasks=16 nodes=8', 'POSIX', 'write', true, false, 0, 1048576, 4194304, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (3, 'ior -a POSIX -w -e -b 8k -t 8k -s 64 tasks=16 nodes=8', 'POSIX', 'write', false, false, 0, 8192, 8192, 64, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (4, 'ior -a POSIX -w -e -b 4m -t 1m tasks=16 nodes=8', 'POSIX', 'write', false, false, 0, 1048576, 4194304, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (5, 'ior -a POSIX -r -F -b 4m -t 1m tasks=16 nodes=8', 'POSIX', 'read', true, false, 0, 1048576, 4194304, 1, 16, 8, false, false, false, false);
INSERT INTO public.configurations VALUES (6, 'ior -a POSIX -r -b 8k -t 8k -s 64 tasks=16 nodes=8', 'POSIX', 'read', false, false, 0, 8192, 8192, 64, 16, 8, false, false, false, false);
INSERT INTO public.configurations VALUES (7, 'ior -a POSIX -w -F -e -b 3600k -t 400k tasks=16 nodes=8', 'POSIX', 'write', true, false, 0, 409600, 3686400, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (8, 'ior -a POSIX -w -F -e -b 30m -t 3m tasks=16 nodes=8', 'POSIX', 'write', true, false, 0, 3145728, 31457280, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (9, 'ior -a POSIX -w -z -e -b 1m -t 32k tasks=16 nodes=8', 'POSIX', 'write', false, false, 1, 32768, 1048576, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (10, 'ior -a POSIX -w -F -e -b 24m -t 24m tasks=16 nodes=8', 'POSIX', 'write', true, false, 0, 25165824, 25165824, 1, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (11, 'ior -a POSIX -w -e -b 128k -t 128k -s 16 tasks=16 nodes=8', 'POSIX', 'write', false, false, 0, 131072, 131072, 16, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (12, 'ior -a POSIX -w -e -b 64k -t 64k -s 32 tasks=16 nodes=8', 'POSIX', 'write', false, false, 0, 65536, 65536, 32, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (13, 'ior -a POSIX -r -b 4m -t 1m tasks=16 nodes=8', 'POSIX', 'read', false, false, 0, 1048576, 4194304, 1, 16, 8, false, false, false, false);
INSERT INTO public.configurations VALUES (14, 'ior -a MPIIO -w -c -e -b 128k -t 128k -s 16 tasks=16 nodes=8', 'MPIIO', 'write', false, true, 0, 131072, 131072, 16, 16, 8, false, true, false, false);
INSERT INTO public.configurations VALUES (15, 'ior -a POSIX -w -b 16m -t 1m tasks=16 nodes=8', 'POSIX', 'write', false, false, 0, 1048576, 16777216, 1, 16, 8, false, false, false, false);
INSERT INTO public.configurations VALUES (16, 'ior -a POSIX -r -b 16m -t 1m tasks=16 nodes=8', 'POSIX', 'read', false, false, 0, 1048576, 16777216, 1, 16, 8, false, false, false, false);
INSERT INTO public.configurations VALUES (17, 'ior -a POSIX -w -b 1m -t 256k tasks=16 nodes=8', 'POSIX', 'write', false, false, 0, 262144, 1048576, 1, 16, 8, false, false, false, false);
INSERT INTO public.configurations VALUES (18, 'ior -a POSIX -r -F -b 1m -t 256k tasks=None nodes=None', 'POSIX', 'read', true, false, 0, 262144, 1048576, 1, NULL, NULL, false, false, false, false);
INSERT INTO public.imports VALUES (1, 1, '4d39e545552f9539c74539abc07474c0e9c20d0ffbcbe08fd4c45c154caa2568', 'benchmarks-1.csv', 'ioncast-csv', '2026-11-21T13:40:27+00:00');
INSERT INTO public.imports VALUES (2, 1, '0956be6ac0a04da0290752346f7625aa808f2b7e535197bfe840aa3691b002ca', 'benchmarks-2.csv', 'ioncast-csv', '2026-11-21T13:40:27+00:00');
INSERT INTO public.imports VALUES (3, 2, '4007a86486b31936eeddb91602fc3a5500de172f0eb2ac9e2a85be274a405f6e', 'wr-shared.json', 'ior', '2026-11-21T13:40:27+00:00');
INSERT INTO public.imports VALUES (4, 3, '4007a86486b31936eeddb91602fc3a5500de172f0eb2ac9e2a85be274a405f6e', 'wr-shared.json', 'ior', '2026-11-21T13:40:27+00:00');
INSERT INTO public.imports VALUES (5, 3, '2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881', 'größer.csv', 'forge-csv', '2026-11-21T13:40:27+00:00');
INSERT INTO public.imports VALUES (6, 3, 'a1fce4363854ff888cff4b8e7875d600c2682390412a8cf79b37d0b11148b0fa', 'again.csv', 'ioncast-csv', '2026-11-21T13:40:27+00:00');
INSERT INTO public.measurements VALUES (1, 1, 1, 1, 4, 0, 41.9479, 16777216, 0.3814, '2026-11-21T04:14:48Z', 'ior', NULL, 'ior -a POSIX -w -F -b 1m -t 64k -e', true, NULL);
INSERT INTO public.measurements VALUES (2, 1, 2, 1, 0, 0, 43.2144, 67108864, 1.481, '2026-11-21T04:14:51Z', 'ior', NULL, 'ior -a POSIX -w -F -b 4m -t 1m -e', true, NULL);
INSERT INTO public.measurements VALUES (3, 1, 3, 1, 1, 0, 6.8544, 8388608, 1.1671, '2026-11-21T04:15:21Z', 'ior', NULL, 'ior -a POSIX -w -b 8k -t 8k -s 64 -e', true, NULL);
INSERT INTO public.measurements VALUES (4, 1, 4, 1, 1, 0, 26.2921, 67108864, 2.4342, '2026-11-21T04:15:34Z', 'ior', NULL, 'ior -a POSIX -w -b 4m -t 1m -e', true, NULL);
INSERT INTO public.measurements VALUES (5, 1, 3, 1, 2, 0, 4.0603, 8388608, 1.9703, '2026-11-21T04:15:37Z', 'ior', NULL, 'ior -a POSIX -w -b 8k -t 8k -s 64 -e', true, NULL);
INSERT INTO public.measurements VALUES (6, 1, 4, 1, 0, 0, 34.0472, 67108864, 1.8797, '2026-11-21T04:15:39Z', 'ior', NULL, 'ior -a POSIX -w -b 4m -t 1m -e', true, NULL);
INSERT INTO public.measurements VALUES (7, 1, 5, 1, 1, 0, 51.6074, 67108864, 1.2401, '2026-11-21T04:15:41Z', 'ior', NULL, 'ior -a POSIX -r -k -F -b 4m -t 1m', true, NULL);
INSERT INTO public.measurements VALUES (8, 1, 6, 1, 4, 0, 14.6492, 8388608, 0.5461, '2026-11-21T04:15:43Z', 'ior', NULL, 'ior -a POSIX -r -k -b 8k -t 8k -s 64', true, NULL);
INSERT INTO public.measurements VALUES (9, 1, 3, 1, 8, 0, 2.5409, 8388608, 3.1484, '2026-11-21T04:15:47Z', 'ior', NULL, 'ior -a POSIX -w -b 8k -t 8k -s 64 -e', true, NULL);
INSERT INTO public.measurements VALUES (10, 1, 7, 1, 8, 0, 79.9235, 58982400, 0.7038, '2026-11-21T04:15:48Z', 'ior', NULL, 'ior -a POSIX -w -F -b 3600k -t 400k -e', true, NULL);
INSERT INTO public.measurements VALUES (11, 1, 2, 1, 1, 0, 26.687, 67108864, 2.3982, '2026-11-21T04:15:52Z', 'ior', NULL, 'ior -a POSIX -w -F -b 4m -t 1m -e', true, NULL);
INSERT INTO public.measurements VALUES (12, 1, 8, 1, 8, 0, 77.9713, 503316480, 6.1561, '2026-11-21T04:15:59Z', 'ior', NULL, 'ior -a POSIX -w -F -b 30m -t 3m -e', true, NULL);
INSERT INTO public.measurements VALUES (13, 1, 7, 1, 2, 0, 48.1736, 58982400, 1.1677, '2026-11-21T04:16:26Z', 'ior', NULL, 'ior -a POSIX -w -F -b 3600k -t 400k -e', true, NULL);
INSERT INTO public.measurements VALUES (14, 1, 4, 1, 2, 0, 25.9238, 67108864, 2.4688, '2026-11-21T04:16:29Z', 'ior', NULL, 'ior -a POSIX -w -b 4m -t 1m -e', true, NULL);
INSERT INTO public.measurements VALUES (15, 1, 9, 1, 1, 0, 24.0414, 16777216, 0.6655, '2026-11-21T04:16:31Z', 'ior', NULL, 'ior -a POSIX -w -z -b 1m -t 32k -e', true, NULL);
INSERT INTO public.measurements VALUES (16, 1, 10, 1, 4, 0, 53.7091, 402653184, 7.1496, '2026-11-21T04:16:39Z', 'ior', NULL, 'ior -a POSIX -w -F -b 24m -t 24m -e', true, NULL);
INSERT INTO public.measurements VALUES (17, 1, 11, 1, 8, 0, 28.8617, 33554432, 1.1087, '2026-11-21T04:16:41Z', 'ior', NULL, 'ior -a POSIX -w -b 128k -t 128k -s 16 -e', true, NULL);
INSERT INTO public.measurements VALUES (18, 1, 7, 1, 4, 0, 80.6682, 58982400, 0.6973, '2026-11-21T04:16:42Z', 'ior', NULL, 'ior -a POSIX -w -F -b 3600k -t 400k -e', true, NULL);
INSERT INTO public.measurements VALUES (19, 1, 11, 1, 0, 0, 24.9832, 33554432, 1.2809, '2026-11-21T04:16:45Z', 'ior', NULL, 'ior -a POSIX -w -b 128k -t 128k -s 16 -e', true, NULL);
INSERT INTO public.measurements VALUES (20, 1, 1, 1, 2, 0, 48.0315, 16777216, 0.3331, '2026-11-21T04:16:46Z', 'ior', NULL, 'ior -a POSIX -w -F -b 1m -t 64k -e', true, NULL);
INSERT INTO public.measurements VALUES (21, 1, 12, 1, 1, 0, 26.3182, 33554432, 1.2159, '2026-11-21T04:16:48Z', 'ior', NULL, 'ior -a POSIX -w -b 64k -t 64k -s 32 -e', true, NULL);
INSERT INTO public.measurements VALUES (22, 1, 13, 1, 0, 0, 46.4421, 67108864, 1.3781, '2026-11-21T04:16:52Z', 'ior', NULL, 'ior -a POSIX -r -k -b 4m -t 1m', true, NULL);
INSERT INTO public.measurements VALUES (23, 1, 13, 1, 8, 0, 56.1104, 67108864, 1.1406, '2026-11-21T04:16:54Z', 'ior', NULL, 'ior -a POSIX -r -k -b 4m -t 1m', true, NULL);
INSERT INTO public.measurements VALUES (24, 1, 8, 1, 2, 0, 50.8324, 503316480, 9.4428, '2026-11-21T04:17:04Z', 'ior', NULL, 'ior -a POSIX -w -F -b 30m -t 3m -e', true, NULL);
INSERT INTO public.measurements VALUES (25, 1, 14, 2, 8, 0, 4.9343, 33554432, 6.4852, '2026-11-21T04:17:13Z', 'ior', NULL, 'ior -a MPIIO -c -w -b 128k -t 128k -s 16 -e', true, NULL);
INSERT INTO public.measurements VALUES (26, 1, 13, 2, 1, 0, 44.7799, 67108864, 1.4292, '2026-11-21T04:17:32Z', 'ior', NULL, 'ior -a POSIX -r -k -b 4m -t 1m', true, NULL);
INSERT INTO public.measurements VALUES (27, 1, 14, 2, 2, 0, 20.1344, 33554432, 1.5893, '2026-11-21T04:17:36Z', 'ior', NULL, 'ior -a MPIIO -c -w -b 128k -t 128k -s 16 -e', true, NULL);
INSERT INTO public.measurements VALUES (28, 1, 2, 2, 8, 0, 60.6028, 67108864, 1.0561, '2026-11-21T04:17:38Z', 'ior', NULL, 'ior -a POSIX -w -F -b 4m -t 1m -e', true, NULL);
INSERT INTO public.measurements VALUES (29, 1, 3, 2, 0, 0, 2.653, 8388608, 3.0155, '2026-11-21T04:17:42Z', 'ior', NULL, 'ior -a POSIX -w -b 8k -t 8k -s 64 -e', true, NULL);
INSERT INTO public.measurements VALUES (30, 1, 1, 2, 8, 0, 50.1907, 16777216, 0.3188, '2026-11-21T04:17:58Z', 'ior', NULL, 'ior -a POSIX -w -F -b 1m -t 64k -e', true, NULL);
INSERT INTO public.measurements VALUES (31, 1, 5, 2, 0, 0, 78.3823, 67108864, 0.8165, '2026-11-21T04:18:00Z', 'ior', NULL, 'ior -a POSIX -r -k -F -b 4m -t 1m', true, NULL);
INSERT INTO public.measurements VALUES (32, 1, 1, 2, 1, 0, 25.4724, 16777216, 0.6281, '2026-11-21T04:18:02Z', 'ior', NULL, 'ior -a POSIX -w -F -b 1m -t 64k -e', true, NULL);
INSERT INTO public.measurements VALUES (33, 1, 11, 2, 4, 0, 26.6033, 33554432, 1.2029, '2026-11-21T04:18:04Z', 'ior', NULL, 'ior -a POSIX -w -b 128k -t 128k -s 16 -e', true, NULL);
INSERT INTO public.measurements VALUES (34, 1, 5, 2, 4, 0, 69.7213, 67108864, 0.9179, '2026-11-21T04:18:05Z', 'ior', NULL, 'ior -a POSIX -r -k -F -b 4m -t 1m', true, NULL);
INSERT INTO public.measurements VALUES (35, 1, 4, 2, 4, 0, 34.1666, 67108864, 1.8732, '2026-11-21T04:18:08Z', 'ior', NULL, 'ior -a POSIX -w -b 4m -t 1m -e', true, NULL);
INSERT INTO public.measurements VALUES (36, 1, 14, 2, 1, 0, 22.3958, 33554432, 1.4288, '2026-11-21T04:18:10Z', 'ior', NULL, 'ior -a MPIIO -c -w -b 128k -t 128k -s 16 -e', true, NULL);
INSERT INTO public.measurements VALUES (37, 1, 7, 2, 0, 0, 42.6754, 58982400, 1.3181, '2026-11-21T04:18:27Z', 'ior', NULL, 'ior -a POSIX -w -F -b 3600k -t 400k -e', true, NULL);
INSERT INTO public.measurements VALUES (38, 1, 5, 2, 2, 0, 68.2059, 67108864, 0.9383, '2026-11-21T04:18:28Z', 'ior', NULL, 'ior -a POSIX -r -k -F -b 4m -t 1m', true, NULL);
INSERT INTO public.measurements VALUES (39, 1, 14, 2, 4, 0, 3.8662, 33554432, 8.2768, '2026-11-21T04:18:37Z', 'ior', NULL, 'ior -a MPIIO -c -w -b 128k -t 128k -s 16 -e', true, NULL);
INSERT INTO public.measurements VALUES (40, 1, 3, 2, 4, 0, 3.6247, 8388608, 2.2071, '2026-11-21T04:18:40Z', 'ior', NULL, 'ior -a POSIX -w -b 8k -t 8k -s 64 -e', true, NULL);
INSERT INTO public.measurements VALUES (41, 2, 15, 3, 4, 0, 662.5639, 268435456, 0.3864, '2026-11-21T03:01:33', 'ior', '4.0.0', 'ior -a POSIX -w -r -b 16m -t 1m -o data/wr-shared/f -O summaryFormat=JSON -O summaryFile=ior_json/wr-shared.json', true, NULL);
INSERT INTO public.measurements VALUES (42, 2, 16, 3, 4, 0, 9784.4161, 268435456, 0.0262, '2026-11-21T03:01:33', 'ior', '4.0.0', 'ior -a POSIX -w -r -b 16m -t 1m -o data/wr-shared/f -O summaryFormat=JSON -O summaryFile=ior_json/wr-shared.json', true, NULL);
INSERT INTO public.measurements VALUES (43, 3, 15, 4, 4, 0, 662.5639, 268435456, 0.3864, '2026-11-21T03:01:33', 'ior', '4.0.0', 'ior -a POSIX -w -r -b 16m -t 1m -o data/wr-shared/f -O summaryFormat=JSON -O summaryFile=ior_json/wr-shared.json', true, NULL);
INSERT INTO public.measurements VALUES (44, 3, 16, 4, 4, 0, 9784.4161, 268435456, 0.0262, '2026-11-21T03:01:33', 'ior', '4.0.0', 'ior -a POSIX -w -r -b 16m -t 1m -o data/wr-shared/f -O summaryFormat=JSON -O summaryFile=ior_json/wr-shared.json', true, NULL);
INSERT INTO public.measurements VALUES (45, 3, 17, 5, 0, 0, 0.1, NULL, NULL, NULL, 'forge', NULL, NULL, true, NULL);
INSERT INTO public.measurements VALUES (46, 3, 17, 5, 0, 1, 0.3333333333333333, NULL, NULL, NULL, 'ior', '4.0.0', NULL, true, NULL);
INSERT INTO public.measurements VALUES (47, 3, 17, 5, 0, 2, 1e+300, 4611686018427387904, 1e-09, NULL, 'forge', NULL, NULL, false, 'population B');
INSERT INTO public.measurements VALUES (48, 3, 17, 5, 0, 3, 123.4567890123, NULL, NULL, NULL, 'ior', NULL, 'ior -w  -o ''a b''', true, NULL);
INSERT INTO public.measurements VALUES (49, 3, 18, 5, 8, 0, 5, NULL, NULL, '2026-11-21T04:14:48Z', 'forge', NULL, NULL, true, NULL);
INSERT INTO public.measurements VALUES (50, 3, 17, 6, 0, 4, 7, NULL, NULL, NULL, 'ior', NULL, NULL, true, NULL);
INSERT INTO public.measurements VALUES (51, 3, 17, 6, 0, 5, 8, NULL, NULL, NULL, 'forge', NULL, NULL, true, NULL);
INSERT INTO public.systems VALUES (1, 'testbed');
INSERT INTO public.systems VALUES (2, 'Testbed');
INSERT INTO public.systems VALUES (3, 'MareNostrum 4');
SELECT pg_catalog.setval('public.configurations_id_seq', 18, true);
SELECT pg_catalog.setval('public.imports_id_seq', 6, true);
SELECT pg_catalog.setval('public.measurements_id_seq', 51, true);
SELECT pg_catalog.setval('public.systems_id_seq', 3, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.configurations
    ADD CONSTRAINT pk_configurations PRIMARY KEY (id);
ALTER TABLE ONLY public.imports
    ADD CONSTRAINT pk_imports PRIMARY KEY (id);
ALTER TABLE ONLY public.measurements
    ADD CONSTRAINT pk_measurements PRIMARY KEY (id);
ALTER TABLE ONLY public.systems
    ADD CONSTRAINT pk_systems PRIMARY KEY (id);
ALTER TABLE ONLY public.configurations
    ADD CONSTRAINT uq_configurations_pattern UNIQUE (pattern);
ALTER TABLE ONLY public.imports
    ADD CONSTRAINT uq_imports_system_id_sha256 UNIQUE (system_id, sha256);
ALTER TABLE ONLY public.measurements
    ADD CONSTRAINT uq_measurements_system_id_configuration_id_io_nodes_repetition UNIQUE (system_id, configuration_id, io_nodes, repetition);
ALTER TABLE ONLY public.systems
    ADD CONSTRAINT uq_systems_name UNIQUE (name);
ALTER TABLE ONLY public.imports
    ADD CONSTRAINT fk_imports_system_id FOREIGN KEY (system_id) REFERENCES public.systems(id);
ALTER TABLE ONLY public.measurements
    ADD CONSTRAINT fk_measurements_configuration_id FOREIGN KEY (configuration_id) REFERENCES public.configurations(id);
ALTER TABLE ONLY public.measurements
    ADD CONSTRAINT fk_measurements_import_id FOREIGN KEY (import_id) REFERENCES public.imports(id);
ALTER TABLE ONLY public.measurements
    ADD CONSTRAINT fk_measurements_system_id FOREIGN KEY (system_id) REFERENCES public.systems(id);
